// A panel in, the line of what if out: what was changed, what came of it against the original, and the way back.
import { button, make, part, unchanged } from "./dom";
import { differences } from "./difference";
import { replacedBy, touching, type Replacement } from "./edits";
import { originalIndex, replacementOf, type Act, type Panel } from "./panel";
import { elsewhere, quoted, spelled, switchable, wordAround, type Line, type Record, type Token } from "./record";
import { changesAnything, NOTHING_CHANGED, type Off, type State, type WhatIf } from "./state";

export interface WhatIfHands {
  readonly act: Act;
  undo(): void;
}

export function drawWhatIf(root: HTMLElement, panels: readonly Panel[], state: State, hands: WhatIfHands): void {
  const first = panels[0];
  root.hidden = !first?.live || first.record.model.task === "embed";
  if (!first || root.hidden) return;
  root.classList.toggle("active", changesAnything(state.whatIf));
  const said = part(root, "div", "said");
  const runs = panels.flatMap(({ original, changed }) => [original.target, original.maps, changed?.target]); // not what is derived of them later
  if (!unchanged(said, state.whatIf, state.show, ...runs))
    said.replaceChildren(...sayings(panels, state, hands));
  const tools = part(root, "div", "tools");
  const picked = chosenIndex(first);
  const replaced = picked < 0 ? null : replacementOf(first, picked);
  const place = picked < 0 || replaced ? -1 : originalIndex(first, picked);
  if (unchanged(tools, place, replaced, first.original.source, state.whatIf)) return; // what is being typed there stays
  tools.replaceChildren(...(replaced ? toolsBack(first, replaced, state, hands.act) : toolsFor(first, place, state, hands.act)));
}

/** The source token of the run on show that is pinned; -1 = none. */
function chosenIndex({ selected, record }: Panel): number {
  if (!selected?.pinned || record.picture || selected.side === "target") return -1;
  return elsewhere(record, selected.side, selected.index, "source", selected.role);
}

/** Signs are of the model and not of the text. */
export function erasable(token: Token | undefined): boolean {
  return token !== undefined && !token.sign && token.text !== "<mask>";
}

/** One thing that was done, in words, and all the others without it. */
interface Done {
  readonly said: string;
  readonly without: WhatIf;
}

/** What was done, one by one; an old address may name what is gone. */
function doneOf(panels: readonly Panel[], { whatIf }: State): Done[] {
  const { original } = panels[0]!;
  const has = ({ panel, map, head }: Off): boolean => !!panelOf(panels, panel)?.original.maps.some((one) => one.name === map && head < one.heads.length);
  return [
    ...erasedWords(original, whatIf.erase).map(({ text, tokens }): Done => ({
      said: `erased ${quoted(text)}`, without: { ...whatIf, erase: whatIf.erase.filter((one) => !tokens.includes(one)) },
    })),
    ...whatIf.replace.map((one): Done => ({
      said: `${quoted(original.source.text.slice(one.start, one.end))} replaced by ${quoted(one.text)}`, without: { ...whatIf, replace: whatIf.replace.filter((other) => other !== one) },
    })),
    ...whatIf.off.filter(has).map((one): Done => ({
      said: `off: ${one.map} head ${one.head}${nameOf(panels, one.panel)}`, without: { ...whatIf, off: whatIf.off.filter((other) => other !== one) },
    })),
    ...forcedWord(panels, whatIf),
  ];
}

function panelOf(panels: readonly Panel[], number: number): Panel | undefined {
  return panels.find((panel) => panel.number === number);
}

/** Of which model, where there are several. */
function nameOf(panels: readonly Panel[], number: number): string {
  return panels.length > 1 ? ` of ${panelOf(panels, number)?.original.model.name ?? ""}` : "";
}

function forcedWord(panels: readonly Panel[], whatIf: WhatIf): Done[] {
  if (!whatIf.begin) return [];
  const { panel, tokens } = whatIf.begin;
  const forced = panelOf(panels, panel)?.changed?.target.tokens[tokens.length - 1];
  return [{ said: `forced ${forced ? quoted(spelled(forced)) : "a word"} at step ${tokens.length}`, without: { ...whatIf, begin: null } }];
}

/** What is erased, word by word. */
function erasedWords({ source }: Record, erase: readonly number[]): { text: string; tokens: number[] }[] {
  const words = new Map<number, number[]>();
  for (const index of [...erase].filter((one) => one < source.tokens.length).sort((a, b) => a - b)) {
    const { sign } = source.tokens[index]!;
    const word = sign ? -1 - index : wordAround(source, index).start; // a place of a picture is a word of its own
    words.set(word, [...(words.get(word) ?? []), index]);
  }
  return [...words.values()].map((tokens) => ({ tokens, text: tokens.map((index) => erasedText(source, index)).join("") }));
}

function erasedText({ text, tokens }: Line, index: number): string {
  const token = tokens[index]!;
  return token.sign ? token.text : text.slice(token.start, token.end) || token.text;
}

function sayings(panels: readonly Panel[], state: State, hands: WhatIfHands): Node[] {
  const lead = make("span", { class: "title" }, "what if");
  const first = panels[0]!;
  if (!changesAnything(state.whatIf)) {
    const writes = first.record.alternatives.length > 0 && !["tag", "fill", "classify", "extract"].includes(first.record.model.task);
    const ways = [first.record.picture ? "" : "click a source word to erase or replace it", writes ? "click an alternative to force it" : "", first.record.maps.some(({ name }) => switchable(name)) ? "alt-click a head to switch it off" : ""];
    return [lead, make("span", { class: "hint" }, ways.filter(Boolean).join(" · "))];
  }
  const one = ({ said, without }: Done): HTMLElement =>
    button(said, { class: "undo-one", "aria-label": `undo: ${said}`, "data-tip": "undo this alone" }, () => hands.act.set({ whatIf: without }));
  const each = doneOf(panels, state).map(one);
  const done = make("span", { class: "done", id: "done" }, ...(each.length ? each : ["nothing that is here"]));
  const results = panels.map((panel) => result(panel, panels.length > 1));
  const toggle = button(state.show === "changed" ? "show the original" : "show the changed", { class: "quiet", id: "show" }, () =>
    hands.act.set({ show: state.show === "changed" ? "original" : "changed" }));
  return [lead, done, ...results, toggle,
    button("undo", { class: "quiet", id: "undo" }, () => hands.undo()),
    button("undo all", { class: "quiet", id: "undo-all" }, () => hands.act.set({ whatIf: NOTHING_CHANGED }))];
}

function result(panel: Panel, many: boolean): Node {
  const id = (name: string): string | null => (panel.number === 0 ? name : null);
  const changed = panel.changed;
  const difference = changed && differences(panel.original, changed);
  const after = make("span", { class: "outcome", id: id("changed"), dir: "auto" }, ...(changed ? marked(changed, difference!.after) : ["…"]));
  const before = make("span", { class: "outcome was", id: id("original"), dir: "auto" }, ...(difference ? marked(panel.original, difference.before) : [panel.original.target.text]));
  const same = difference && difference.after.size + difference.before.size === 0;
  const verdict = same ? make("span", { class: "hint" }, " · nothing changes") : null;
  return make("span", { class: "result", "data-result": panel.number }, ...[
    many ? make("span", { class: "hint" }, `${panel.original.model.name}: `) : "", "→ ", after,
    make("span", { class: "against" }, " against "), before, verdict ?? ""]);
}

/** The text of the output with tokens that the other run does not have set apart. */
function marked(record: Record, differs: ReadonlySet<number>): (Node | string)[] {
  const { text, tokens } = record.target;
  const nodes: (Node | string)[] = [];
  let reached = 0;
  tokens.forEach((token, index) => {
    if (token.sign) return;
    if (token.start > reached) nodes.push(text.slice(reached, token.start));
    const piece = text.slice(Math.max(reached, token.start), token.end);
    nodes.push(differs.has(index) ? make("mark", {}, piece) : piece);
    reached = Math.max(reached, token.end);
  });
  return reached < text.length ? [...nodes, text.slice(reached)] : nodes;
}

function toolsFor(panel: Panel, index: number, state: State, act: Act): Node[] {
  const line = panel.original.source;
  const token = line.tokens[index];
  if (!erasable(token) || !token) return [];
  const word = wordAround(line, index);
  const text = line.text.slice(word.start, word.end);
  const erase = (tokens: readonly number[]): void => {
    const rest = state.whatIf.erase.filter((one) => !tokens.includes(one));
    const back = tokens.every((one) => state.whatIf.erase.includes(one));
    act.set({ whatIf: { ...state.whatIf, erase: back ? rest : [...rest, ...tokens] }, show: "changed" });
  };
  const gone = (tokens: readonly number[]): string => (tokens.every((one) => state.whatIf.erase.includes(one)) ? "bring back" : "erase");
  const tools: Node[] = [button(`${gone([index])} ${quoted(spelled(token))}`, { id: "erase" }, () => erase([index]))];
  if (word.tokens.length > 1) tools.push(button(`${gone(word.tokens)} ${quoted(text)}`, { id: "erase-word" }, () => erase(word.tokens)));
  return token.sign ? tools : [...tools, replaceForm(word, text, line, state, act)];
}

/** A word that was put in can go again, or give way to another. */
function toolsBack(panel: Panel, replaced: Replacement, state: State, act: Act): Node[] {
  const line = panel.original.source;
  const back = (): void => act.set({ whatIf: { ...state.whatIf, replace: state.whatIf.replace.filter((one) => one !== replaced) } });
  return [button(`bring back ${quoted(line.text.slice(replaced.start, replaced.end))}`, { id: "bring-back" }, back), replaceForm(replaced, replaced.text, line, state, act)];
}

function replaceForm(word: { start: number; end: number }, text: string, line: Line, state: State, act: Act): HTMLElement {
  const input = make("input", { id: "replace", type: "text", placeholder: `instead of ${quoted(text)}`, "aria-label": `replace ${quoted(text)} by`, dir: "auto" });
  const form = make("form", { class: "replace" }, input, make("button", { type: "submit" }, "replace"));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (input.value === "") return;
    const { start, end } = word;
    const elsewhereErased = state.whatIf.erase.filter((index) => !touching([start, end], [line.tokens[index]?.start ?? 0, line.tokens[index]?.end ?? 0]));
    const replace = replacedBy(state.whatIf.replace, { start, end, text: input.value });
    act.set({ whatIf: { ...state.whatIf, erase: elsewhereErased, replace }, show: "changed" });
  });
  return form;
}
