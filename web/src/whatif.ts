// A panel in, the line of what if out: what was changed, what came of it against the original, and the way back.
import { button, make, part, unchanged } from "./dom";
import { differences } from "./difference";
import { originalIndex, type Act, type Panel } from "./panel";
import { elsewhere, quoted, spelled, wordAround, type Record, type Token } from "./record";
import { changesAnything, NOTHING_CHANGED, type State } from "./state";

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
  if (!unchanged(said, state.whatIf, state.show, ...panels.flatMap((panel) => [panel.original, panel.changed])))
    said.replaceChildren(...sayings(panels, state, hands));
  const tools = part(root, "div", "tools");
  const picked = first.selected?.pinned ? sourceIndex(first) : -1;
  if (!unchanged(tools, picked, first.original, state.whatIf)) tools.replaceChildren(...toolsFor(first, picked, state, hands.act));
}

/** The source token of the original that is chosen; -1 = none that could be erased. */
function sourceIndex(panel: Panel): number {
  const { selected, record } = panel;
  if (!selected || record.picture || selected.side === "target") return -1;
  const index = elsewhere(record, selected.side, selected.index, "source", selected.role);
  const found = index < 0 ? -1 : originalIndex(panel, index);
  return found >= 0 && erasable(panel.original.source.tokens[found]) ? found : -1;
}

/** Signs are of the model and not of the text. */
export function erasable(token: Token | undefined): boolean {
  return token !== undefined && !token.sign && token.text !== "<mask>";
}

/** What was done, in words. */
function changeInWords({ original, changed }: Panel, state: State): string[] {
  const { replace, begin } = state.whatIf;
  const erase = state.whatIf.erase.filter((index) => index < original.source.tokens.length);
  const off = state.whatIf.off.filter(([name, head]) => original.maps.some((map) => map.name === name && head < map.heads.length));
  const words: string[] = [];
  if (erase.length) words.push(`erased ${quoted(erasedText(original, erase))}`);
  if (replace) words.push(`${quoted(original.source.text.slice(replace.start, replace.end))} replaced by ${quoted(replace.text)}`);
  if (off.length) words.push(`off: ${off.map(([map, head]) => `${map} head ${head}`).join(", ")}`);
  const forced = changed?.target.tokens[begin.length - 1];
  if (begin.length) words.push(`forced ${forced ? quoted(spelled(forced)) : "a word"} at step ${begin.length}`);
  return words.length ? words : ["nothing that is here"]; // an old address may name what is gone
}

function erasedText(record: Record, erase: readonly number[]): string {
  const tokens = [...erase].sort((a, b) => a - b).map((index) => record.source.tokens[index]);
  let end = -1;
  return tokens.reduce((text, token) => {
    if (!token) return text;
    const apart = end >= 0 && token.start > end ? " " : "";
    end = token.end;
    return text + apart + (token.sign ? token.text : record.source.text.slice(token.start, token.end));
  }, "");
}

function sayings(panels: readonly Panel[], state: State, hands: WhatIfHands): Node[] {
  const lead = make("span", { class: "title" }, "what if");
  const first = panels[0]!;
  if (!changesAnything(state.whatIf)) {
    const writes = first.record.alternatives.length > 0 && !["tag", "fill", "classify", "extract"].includes(first.record.model.task);
    const ways = [first.record.picture ? "" : "click a source word to erase or replace it", writes ? "click an alternative to force it" : "", first.record.maps.length ? "alt-click a head to switch it off" : ""];
    return [lead, make("span", { class: "hint" }, ways.filter(Boolean).join(" · "))];
  }
  const done = make("span", { class: "done", id: "done" }, changeInWords(first, state).join("; "));
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
  if (!token) return [];
  const word = wordAround(line, index);
  const text = line.text.slice(word.start, word.end);
  const erase = (tokens: readonly number[]): void => {
    const rest = state.whatIf.erase.filter((one) => !tokens.includes(one));
    const back = tokens.every((one) => state.whatIf.erase.includes(one));
    act.set({ whatIf: { ...state.whatIf, replace: null, erase: back ? rest : [...rest, ...tokens] }, show: "changed" });
  };
  const gone = (tokens: readonly number[]): string => (tokens.every((one) => state.whatIf.erase.includes(one)) ? "bring back" : "erase");
  const tools: Node[] = [button(`${gone([index])} ${quoted(spelled(token))}`, { id: "erase" }, () => erase([index]))];
  if (word.tokens.length > 1) tools.push(button(`${gone(word.tokens)} ${quoted(text)}`, { id: "erase-word" }, () => erase(word.tokens)));
  return token.sign ? tools : [...tools, replaceForm(word, text, state, act)];
}

function replaceForm(word: { start: number; end: number }, text: string, state: State, act: Act): HTMLElement {
  const input = make("input", { id: "replace", type: "text", placeholder: `instead of ${quoted(text)}`, "aria-label": `replace ${quoted(text)} by`, dir: "auto" });
  const form = make("form", { class: "replace" }, input, make("button", { type: "submit" }, "replace"));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (input.value !== "") act.set({ whatIf: { ...state.whatIf, erase: [], replace: { start: word.start, end: word.end, text: input.value } }, show: "changed" });
  });
  return form;
}
