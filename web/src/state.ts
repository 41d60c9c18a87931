// All that a view is made of in one object, and the URL that says the same.
import { replacedBy, type Replacement } from "./edits";
import type { Side } from "./wire";

export type View = "attention" | "rollout" | "gradient" | "erasure";
export const VIEWS: readonly View[] = ["attention", "rollout", "gradient", "erasure"];

export interface Selection {
  readonly panel: number;
  readonly side: Side;
  readonly index: number;
  readonly role: "query" | "key";
  /** The other end, when one cell of a heat map was chosen. */
  readonly across: number | null;
  readonly pinned: boolean;
}

export interface Sampling {
  readonly temperature: number;
  readonly top_k: number;
  readonly top_p: number;
  readonly seed: number;
}

/** A head of one of the models that stand side by side. */
export interface Off {
  readonly panel: number;
  readonly map: string;
  readonly head: number;
}

/** What an output is made to begin with, in the tokens of one of the models. */
export interface Beginning {
  readonly panel: number;
  readonly tokens: readonly number[];
}

/** All that is changed in one run. Words are of the text and act on every model, a head only on its own. */
export interface WhatIf {
  /** Source tokens, numbered as the first model reads the text that was typed. */
  readonly erase: readonly number[];
  readonly replace: readonly Replacement[];
  readonly off: readonly Off[];
  readonly begin: Beginning | null;
}

export interface State {
  readonly tab: "look" | "lesson";
  readonly page: string;
  readonly models: readonly string[];
  readonly text: string;
  /** The name of the picture that is looked at; the picture itself is in no address. */
  readonly picture: string;
  readonly beam: number;
  readonly sample: Sampling | null;
  readonly view: View;
  readonly map: { readonly name: string; readonly head: number | null } | null;
  readonly selected: Selection | null;
  readonly step: number | null;
  readonly whatIf: WhatIf;
  readonly show: "changed" | "original";
  readonly theme: "light" | "dark" | null;
  readonly example: number;
  readonly lines: string;
  /** What the models of the lesson are asked; empty = the lesson's own example. */
  readonly say: string;
}

const LONG = 4000; // letters that an address still holds with ease

export const NOTHING_CHANGED: WhatIf = { erase: [], replace: [], off: [], begin: null };

export const START: State = {
  tab: "look", page: "", models: [], text: "", picture: "", beam: 0, sample: null, view: "attention", map: null, selected: null,
  step: null, whatIf: NOTHING_CHANGED, show: "changed", theme: null, example: 0, lines: "", say: "",
};

/** What was done to one tab and is of no concern to the other. */
export type Doings = Pick<State, "whatIf" | "view" | "map" | "show" | "selected" | "step">;

export function doingsOf({ whatIf, view, map, show, selected, step }: State): Doings {
  return { whatIf, view, map, show, selected, step };
}

export const USUAL_SAMPLING: Sampling = { temperature: 1, top_k: 0, top_p: 1, seed: 1 };

export function changesAnything(whatIf: WhatIf): boolean {
  return whatIf.erase.length + whatIf.off.length + whatIf.replace.length > 0 || whatIf.begin !== null;
}

function selectionToText({ panel, side, index, role, across }: Selection): string {
  return [side, index, role, panel, across ?? ""].join("-");
}

function selectionFromText(text: string): Selection | null {
  const [side, index, role, panel, across] = text.split("-");
  if (side !== "source" && side !== "target" && side !== "written" && side !== "row") return null;
  const other = across ? whole(across, -1) : -1;
  return {
    side, index: whole(index, 0), role: role === "key" ? "key" : "query", panel: whole(panel, 0),
    across: other < 0 ? null : other, pinned: true,
  };
}

function whole(text: string | null | undefined, otherwise: number): number {
  const number = Number.parseInt(text ?? "", 10);
  return Number.isFinite(number) && number >= 0 ? number : otherwise;
}

function numbers(text: string | null): number[] {
  return (text ?? "").split(",").flatMap((part) => (/^\d+$/.test(part) ? [Number(part)] : []));
}

/** What belongs to another model than the first says to which: name/1@2. */
function owned(text: string, panel: number): string {
  return panel ? `${text}@${panel}` : text;
}

function headFromText(text: string): Off[] {
  const found = /^([^]*)\/(\d+)(?:@(\d+))?$/.exec(text);
  return found ? [{ map: found[1]!, head: Number(found[2]), panel: whole(found[3], 0) }] : [];
}

function beginningFromText(text: string): Beginning | null {
  const [tokens, panel] = text.split("@");
  const found = numbers(tokens ?? "");
  return found.length ? { tokens: found, panel: whole(panel, 0) } : null;
}

function replacementFromText(text: string): Replacement[] {
  const found = /^(\d+)-(\d+)-([^]*)$/.exec(text);
  return found && Number(found[1]) <= Number(found[2]) ? [{ start: Number(found[1]), end: Number(found[2]), text: found[3]! }] : [];
}

/** What follows # in the address; what is as at the start is left out. */
export function toHash(state: State): string {
  const said = new URLSearchParams();
  const put = (name: string, value: string | number, unless: string | number): void => {
    if (value !== unless) said.append(name, String(value));
  };
  put("tab", state.tab, START.tab);
  put("page", state.page, START.page);
  state.models.forEach((name) => said.append("model", name));
  put("text", state.text, START.text);
  put("picture", state.picture, START.picture);
  if (state.lines.length < LONG) put("lines", state.lines, START.lines);
  put("say", state.say, START.say);
  put("beam", state.beam, START.beam);
  if (state.sample) put("sample", [state.sample.temperature, state.sample.top_k, state.sample.top_p, state.sample.seed].join(","), "");
  put("view", state.view, START.view);
  if (state.map) put("map", `${state.map.name}/${state.map.head ?? "mean"}`, "");
  if (state.selected?.pinned) put("at", selectionToText(state.selected), "");
  if (state.step !== null) put("step", state.step, "");
  whatIfToHash(state.whatIf, put);
  put("show", state.show, START.show);
  put("theme", state.theme ?? "", "");
  put("example", state.example, START.example);
  return said.toString();
}

function whatIfToHash(whatIf: WhatIf, put: (name: string, value: string, unless: string) => void): void {
  put("erase", whatIf.erase.join(","), "");
  if (whatIf.begin) put("begin", owned(whatIf.begin.tokens.join(","), whatIf.begin.panel), "");
  whatIf.off.forEach(({ map, head, panel }) => put("off", owned(`${map}/${head}`, panel), ""));
  whatIf.replace.forEach(({ start, end, text }) => put("replace", `${start}-${end}-${text}`, ""));
}

function whatIfFromHash(said: URLSearchParams): WhatIf {
  const replace = said.getAll("replace").flatMap(replacementFromText).reduce<Replacement[]>(replacedBy, []);
  return {
    erase: numbers(said.get("erase")), begin: beginningFromText(said.get("begin") ?? ""), off: said.getAll("off").flatMap(headFromText), replace,
  };
}

function sampleFromText(text: string | null): Sampling | null {
  if (text === null) return null;
  const [temperature, top_k, top_p, seed] = text.split(",").map(Number);
  const right = (value: number | undefined, otherwise: number): number => (Number.isFinite(value) ? value! : otherwise);
  return {
    temperature: right(temperature, 1), top_k: right(top_k, 0), top_p: right(top_p, 1), seed: right(seed, 1),
  };
}

function mapFromText(text: string | null): State["map"] {
  if (!text) return null;
  const slash = text.lastIndexOf("/");
  const head = Number.parseInt(text.slice(slash + 1), 10);
  return slash < 0 ? null : { name: text.slice(0, slash), head: Number.isFinite(head) ? head : null };
}

/** The state that an address names; what can not be read is as at the start. */
export function fromHash(hash: string): State {
  const said = new URLSearchParams(hash.replace(/^#/, ""));
  const view = said.get("view") as View;
  const theme = said.get("theme");
  const tab = said.get("tab") === "lesson" ? "lesson" : "look";
  return {
    tab,
    page: said.get("page") ?? "",
    models: said.getAll("model"),
    text: said.get("text") ?? "",
    picture: said.get("picture") ?? "",
    lines: said.get("lines") ?? "",
    say: said.get("say") ?? "",
    beam: whole(said.get("beam"), 0),
    sample: sampleFromText(said.get("sample")),
    view: VIEWS.includes(view) ? view : "attention",
    map: mapFromText(said.get("map")),
    selected: selectionFromText(said.get("at") ?? ""),
    step: said.has("step") ? whole(said.get("step"), 0) : null,
    whatIf: tab === "lesson" ? NOTHING_CHANGED : whatIfFromHash(said), // nothing is changed in the lesson
    show: said.get("show") === "original" ? "original" : "changed",
    theme: theme === "light" || theme === "dark" ? theme : null,
    example: whole(said.get("example"), 0),
  };
}
