// A panel in, the decoding step by step out: a player, the alternatives of the step, and the beam as a tree.
import { button, dress, figure, make, part, unchanged } from "./dom";
import { drawBeam } from "./beam";
import type { Act, Panel } from "./panel";
import { elsewhere, quoted, spelled, wordAround, writable, type Record } from "./record";
import type { Alternative } from "./wire";

const PACE = 450; // milliseconds a step
const MANY = 60; // bars, from which on they stand without a gap
const OWN_WORDS: { readonly [task: string]: string } = { tag: "words", fill: "holes", extract: "the piece", classify: "label" };

export function drawSteps(root: HTMLElement, panel: Panel, act: Act): void {
  const { record } = panel;
  const count = record.target.tokens.length;
  root.hidden = count === 0 || record.model.task === "classify"; // its bars stand above
  if (root.hidden) return;
  hands.set(root, { panel, act });
  const writes = !(record.model.task in OWN_WORDS);
  const head = part(root, "div", "player");
  if (!head.firstChild) controls(head, root);
  head.querySelector(".title")!.textContent = writes ? "steps" : OWN_WORDS[record.model.task]!;
  for (const control of head.children) if (!control.matches(".title")) (control as HTMLElement).hidden = !writes;
  drawStrip(head.querySelector<HTMLElement>(".strip")!, panel);
  const body = part(root, "div", "step-body");
  const alternatives = part(body, "div", "alternatives");
  alternatives.classList.toggle("ends", record.model.task === "extract");
  drawAlternatives(alternatives, panel, act);
  const tree = part(body, "div", "tree scroll");
  tree.hidden = !record.beam?.length;
  if (record.beam?.length) drawBeam(tree, panel, act);
}

const hands = new WeakMap<HTMLElement, { panel: Panel; act: Act }>();
const playing = new WeakMap<HTMLElement, number>();

export function currentStep(panel: Panel): number {
  const { state, selected, record } = panel;
  const last = record.target.tokens.length - 1;
  const pointed = selected && selected.side !== "source" ? elsewhere(record, selected.side, selected.index, "target", selected.role) : -1;
  return Math.min(pointed >= 0 ? pointed : state.step ?? 0, last);
}

function go(root: HTMLElement, step: number | null): void {
  const { panel, act } = hands.get(root)!;
  if (step === null) return act.set({ step: null, selected: null });
  const index = Math.max(0, Math.min(panel.record.target.tokens.length - 1, step));
  act.set({ step: index, selected: { panel: panel.number, side: "target", index, role: "query", across: null, pinned: true } });
}

function controls(head: HTMLElement, root: HTMLElement): void {
  const here = (): number => currentStep(hands.get(root)!.panel);
  head.append(
    make("span", { class: "title" }, "steps"),
    button("◀", { class: "unsaved", "aria-label": "one step back", "data-step": "back" }, () => go(root, here() - 1)),
    make("div", { class: "strip", role: "group", "aria-label": "steps; each bar is a token, its height the probability" }),
    button("▶", { class: "unsaved", "aria-label": "one step on", "data-step": "on" }, () => go(root, hands.get(root)!.panel.state.step === null ? 0 : here() + 1)),
    button("play", { "data-step": "play", class: "quiet unsaved" }, (event) => play(root, event.currentTarget as HTMLElement)),
    button("whole", { "data-step": "whole", class: "quiet unsaved", "aria-label": "show the whole output" }, () => go(root, null)),
  );
}

function play(root: HTMLElement, control: HTMLElement): void {
  const running = playing.get(root);
  const stop = (): void => {
    clearInterval(playing.get(root));
    playing.delete(root);
    control.textContent = "play";
  };
  if (running !== undefined) return stop();
  const { panel } = hands.get(root)!;
  const last = panel.record.target.tokens.length - 1;
  go(root, panel.state.step === null || panel.state.step >= last ? 0 : panel.state.step + 1);
  control.textContent = "pause";
  playing.set(root, window.setInterval(() => {
    const now = hands.get(root)!.panel;
    const step = now.state.step ?? -1;
    if (!root.isConnected || step >= now.record.target.tokens.length - 1) stop();
    else go(root, step + 1);
  }, PACE));
}

/** One bar a token, as tall as it was sure. */
function drawStrip(strip: HTMLElement, panel: Panel): void {
  const { record, state } = panel;
  const root = strip.closest<HTMLElement>(".steps")!;
  if (!unchanged(strip, record)) {
    strip.classList.toggle("many", record.target.tokens.length > MANY);
    strip.replaceChildren(...record.target.tokens.map((token, index) => {
      const probability = record.probabilities[index] ?? 0;
      const said = `step ${index + 1}: ${quoted(spelled(token))}, probability ${figure(probability)}${copiedAt(record, index)}`;
      const bar = button("", { class: "bar", "aria-label": said, "data-tip": said, "data-bar": index, tabindex: -1 }, () => go(root, index));
      const level = make("span", { class: "level" });
      level.style.height = `${(100 * probability).toFixed(1)}%`;
      bar.append(level);
      return bar;
    }));
  }
  const here = currentStep(panel);
  if (unchanged(strip.children, record, here, state.step)) return;
  Array.from(strip.children).forEach((bar, index) => {
    bar.classList.toggle("later", state.step !== null && index > state.step);
    dress(bar, { "aria-current": index === here ? "step" : null });
  });
}

const UNWRITTEN: { readonly [id: number]: string } = { 0: "<pad>", 1: "<start>", 3: "<separator>", 4: "<mask>", 6: "<class>" };

/** Signs of the model that no output holds, whatever chance they are given. */
function unwritten({ id, text }: Alternative): boolean {
  return UNWRITTEN[id] === text;
}

/** What could have been written here, best first; a click writes it and lets the model go on. */
function drawAlternatives(place: HTMLElement, panel: Panel, act: Act): void {
  const { record } = panel;
  const step = currentStep(panel);
  if (unchanged(place, record, step, panel.live, panel.state.whatIf)) return;
  if (record.model.task === "extract") return place.replaceChildren(...ends(record));
  const token = record.target.tokens[step];
  const writes = !(record.model.task in OWN_WORDS);
  const list = make("ol", { class: "choices" });
  for (const alternative of (record.alternatives[step] ?? []).filter((one) => one.id === token?.id || !unwritten(one))) {
    const bar = make("span", { class: "level" });
    bar.style.width = `${(100 * alternative.probability).toFixed(2)}%`;
    const chosen = alternative.id === token?.id;
    const free = panel.live && writes && writable(alternative.id);
    const said = `${quoted(alternative.text)} ${figure(alternative.probability)}${free ? ": write this and go on" : ""}`;
    const line = button("", { class: chosen ? "choice chosen" : "choice", "data-alternative": alternative.id, "data-probability": alternative.probability, "aria-label": said, disabled: !free }, () => force(panel, act, step, alternative.id));
    line.append(
      make("span", { class: "name", dir: "auto" }, spelled({ ...alternative, start: 0, end: 1, sign: false })),
      make("span", { class: "track" }, bar),
      make("span", { class: "value" }, figure(alternative.probability)),
    );
    list.append(make("li", {}, line));
  }
  const title = make("p", { class: "hint" }, writes ? `step ${step + 1} of ${record.target.tokens.length}${copiedAt(record, step)}` : `${quoted(token ? spelled(token) : "")}, and what else it could be`);
  place.replaceChildren(title, list);
}

/** How much a copy head had of a step, where there is one. */
function copiedAt(record: Panel["record"], index: number): string {
  const share = record.copied?.[index];
  return share == null ? "" : `, copied ${figure(share)}`;
}

/** Where the piece could begin and where it could end, each place as the word that stands there. */
function ends(record: Record): Node[] {
  return record.alternatives.map((places, side) => {
    const list = make("ol", { class: "choices" }, ...places.map(({ id, text, probability }) => {
      const bar = make("span", { class: "level" });
      bar.style.width = `${(100 * probability).toFixed(2)}%`;
      const chosen = record.at?.[side]?.[side ? 1 : 0] === id;
      return make("li", {}, make("div", { class: chosen ? "choice chosen" : "choice", "data-place": id, "data-probability": probability },
        make("span", { class: "name", dir: "auto" }, ...wordAt(record, id, text)), make("span", { class: "track" }, bar), make("span", { class: "value" }, figure(probability))));
    }));
    return make("div", {}, make("p", { class: "hint" }, side ? "it ends with" : "it begins with"), list);
  });
}

const BEFORE = 12; // letters that stand before a word, to tell it from the same word elsewhere

/** The word around a token of the source, the token itself strong where it is not the whole word. */
function wordAt({ source }: Record, index: number, otherwise: string): (Node | string)[] {
  const token = source.tokens[index];
  if (!token || token.sign) return [otherwise];
  const { start, end } = wordAround(source, index);
  const column = source.text.slice(0, start).split("\t").at(-1)!;
  const lead = column.length > BEFORE ? `…${column.slice(-BEFORE).replace(/^\S*\s(?=.*\S)/, "")}` : column;
  const [from, to] = [Math.max(start, token.start), Math.min(end, token.end)];
  return [make("span", { class: "hint" }, lead), source.text.slice(start, from), make("strong", {}, source.text.slice(from, to).trim() ? source.text.slice(from, to) : "␣"), source.text.slice(to, end)];
}

function force(panel: Panel, act: Act, step: number, id: number): void {
  const before = panel.record.target.tokens.slice(0, step).map((token) => token.id);
  act.set({ whatIf: { ...panel.state.whatIf, begin: { panel: panel.number, tokens: [...before, id] } }, show: "changed", step: null });
}
