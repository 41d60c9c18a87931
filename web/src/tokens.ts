// A text and its tokens in, a line that can be pointed at out: tokens are spans over the original text.
import { dress, figure, make, unchanged } from "./dom";
import type { Act, Panel } from "./panel";
import { quoted, spelled, type Line, type Token } from "./record";
import type { Side } from "./wire";

export interface TokenLine {
  readonly side: Side;
  readonly role: "query" | "key";
  readonly line: Line;
  readonly label: string;
  /** Stretches of the text whose tokens were erased. */
  readonly gone: readonly (readonly [number, number])[];
  /** The second time the same text stands in one figure. */
  readonly copy?: boolean;
}

const MANY = 80; // tokens, from which on they stand closer
const LONGEST = 20; // letters that are kept on one line
const CURSIVE = /\p{Script=Arabic}|\p{Script=Syriac}|\p{Script=Mongolian}|\p{Script=Devanagari}|\p{Script=Bengali}/u;

/** Tokens of one letter get air between them, but not in scripts whose letters hold hands. */
function airy(line: Line): boolean {
  const plain = line.tokens.filter((token) => !token.sign);
  const short = plain.filter((token) => token.end - token.start <= 1).length;
  return plain.length > 0 && short / plain.length > 0.8 && !CURSIVE.test(line.text);
}

function tokenSpan(token: Token, side: Side, index: number, copy: boolean, text: string): HTMLElement {
  const name = `${side}-${index}`;
  const place = copy ? { "data-copy": name } : { "data-token": name };
  const shown = token.sign ? spelled(token) : text.slice(token.start, token.end);
  const kind = token.sign ? "token sign" : shown.trim() ? "token" : "token blank";
  return make("span", { class: kind, role: "option", tabindex: -1, "data-index": index, ...place }, shown);
}

interface Run {
  /** Numbers of tokens, in the order in which the model reads them. */
  readonly tokens: readonly number[];
  /** The stretch of the text that they stand in. */
  readonly from: number;
  readonly to: number;
}

/** Tokens that go forward through the text. A model may read its columns in another order than they stand in: then each
    time it goes back, another run begins. */
function runsOf({ text, tokens }: Line): Run[] {
  const runs: number[][] = [[]];
  let first = 0; // where the run begins
  let begun = false;
  tokens.forEach(({ start, sign }, index) => {
    if (!sign && begun && start < first) runs.push([]);
    if (!sign && (!begun || start < first)) first = start;
    begun ||= !sign;
    runs.at(-1)!.push(index);
  });
  if (runs.length === 1) return [{ tokens: runs[0]!, from: 0, to: text.length }];
  return runs.map((run) => {
    const plain = run.map((index) => tokens[index]!).filter(({ sign }) => !sign);
    const end = text.indexOf("\t", Math.max(...plain.map(({ end }) => end)));
    return { tokens: run, from: text.slice(0, plain[0]!.start).lastIndexOf("\t") + 1, to: end < 0 ? text.length : end };
  });
}

/** The tokens of a line by their numbers. */
export function spansOf(root: HTMLElement): HTMLElement[] {
  const spans = Array.from(root.querySelectorAll<HTMLElement>("[data-index]"));
  const number = (span: HTMLElement): number => Number(span.dataset["index"]);
  return spans.every((span, i) => number(span) === i) ? spans : spans.sort((a, b) => number(a) - number(b));
}

/** Text nodes for what no token covers, spans for tokens; tokens that overlap an earlier one begin where it ends. */
function pieces(spec: TokenLine): Node[] {
  return runsOf(spec.line).flatMap((run) => piecesOf(spec, run));
}

function piecesOf(spec: TokenLine, run: Run): Node[] {
  const { line, side } = spec;
  const nodes: Node[] = [];
  let reached = run.from;
  let before = -1;
  run.tokens.forEach((index) => {
    const token = line.tokens[index]!;
    const start = token.sign ? reached : Math.max(token.start, reached); // a sign covers nothing
    if (start > reached) nodes.push(...gaps(spec, reached, start));
    const span = tokenSpan({ ...token, start, end: Math.max(start, token.end) }, side, index, spec.copy ?? false, line.text);
    if (!token.sign && before === start && start > 0) span.classList.add("joined");
    nodes.push(span);
    if (!token.sign) reached = Math.max(reached, token.end);
    before = token.sign ? -1 : token.end;
  });
  if (reached < run.to) nodes.push(...gaps(spec, reached, run.to));
  return nodes;
}

/** Letters of one word in one box, so that a line ends between words; scripts without spaces may end it anywhere. */
function together(nodes: readonly Node[]): Node[] {
  const made: Node[] = [];
  let word: HTMLElement[] = [];
  const close = (): void => {
    made.push(...(word.length > 1 && word.length <= LONGEST ? [make("span", { class: "together" }, ...word)] : word));
    word = [];
  };
  for (const node of nodes) {
    const letter = node instanceof HTMLElement && /^[^\s\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]$/u.test(node.textContent ?? "");
    if (letter) word.push(node);
    else {
      close();
      made.push(node);
    }
  }
  close();
  return made;
}

/** What no token covers: white space, the end of a column, what was erased, struck out, or what was not read at all. */
function gaps(spec: TokenLine, from: number, to: number): Node[] {
  const { line: { text }, gone } = spec;
  const tabs = [...text.slice(from, to).matchAll(/\t/g)].flatMap(({ index }) => [from + index, from + index + 1]);
  const inner = [...gone.flat(), ...tabs].filter((at) => at > from && at < to);
  const cuts = [...new Set([from, to, ...inner])].sort((a, b) => a - b);
  return cuts.slice(1).map((end, i) => {
    const start = cuts[i]!;
    const piece = text.slice(start, end);
    if (piece === "\t") return make("span", { class: "tab", "aria-hidden": true }, " ⇥ ");
    if (gone.some(([first, last]) => first <= start && end <= last)) return make("span", { class: "token erased" }, piece);
    return isUnread(spec.side, piece) ? make("span", { class: "unread", "data-tip": tooLong(spec) }, piece) : document.createTextNode(piece);
  });
}

/** Whether more than space, or what stands between tags, was left out of a source. */
function isUnread(side: Side, piece: string): boolean {
  return (side === "source" || side === "row") && /[^\s;|]/u.test(piece);
}

/** Why a part of a text was not read; what the model added at its end is not counted, and what was erased is. */
function tooLong({ side, line, gone }: TokenLine): string {
  const read = line.tokens.length - Number(line.tokens.at(-1)?.sign ?? false) + gone.length;
  return side === "source" ? `not read: the model takes ${read} tokens at most` : "not read: the text is longer than the model takes";
}

/** Draws the spans once for each text; what changes with the selection is put on by `mark`. */
export function drawTokens(root: HTMLElement, spec: TokenLine, panel: Panel, act: Act): void {
  dress(root, { role: "listbox", "aria-label": spec.label, dir: "auto", "aria-orientation": "horizontal" });
  dress(root, { "data-side": spec.side, "data-role": spec.role, "data-panel": panel.number });
  root.classList.toggle("airy", airy(spec.line));
  root.classList.toggle("dense", spec.line.tokens.length > MANY);
  if (!unchanged(root, spec.line.text, spec.line.tokens, spec.side, spec.copy, spec.gone)) {
    const focused = root.contains(document.activeElement) ? Number((document.activeElement as HTMLElement).dataset["index"]) : -1;
    root.replaceChildren(...(airy(spec.line) ? together(pieces(spec)) : pieces(spec)));
    if (focused >= 0) root.querySelector<HTMLElement>(`[data-index="${focused}"]`)?.focus();
  }
  listen(root, act);
}

type How = "over" | "focus" | "pin";

const listening = new WeakSet<HTMLElement>();
const acts = new WeakMap<HTMLElement, Act>();

function listen(root: HTMLElement, act: Act): void {
  acts.set(root, act);
  if (listening.has(root)) return;
  listening.add(root);
  const pick = (event: Event, how: How): void => {
    const span = event.target instanceof Element ? event.target.closest<HTMLElement>("[data-index]") : null;
    if (span && root.contains(span)) choose(root, Number(span.dataset["index"]), how);
  };
  root.addEventListener("pointerover", (event) => event.pointerType === "mouse" && pick(event, "over"));
  root.addEventListener("pointerleave", () => acts.get(root)?.leave());
  root.addEventListener("click", (event) => pick(event, "pin"));
  root.addEventListener("focusin", (event) => (event.target as HTMLElement).matches(":focus-visible") && pick(event, "focus"));
  root.addEventListener("keydown", (event) => move(root, event));
}

function choose(root: HTMLElement, index: number, how: How): void {
  const side = root.dataset["side"] as Side;
  const role = root.dataset["role"] as "query" | "key";
  acts.get(root)?.select({ panel: Number(root.dataset["panel"]), side, index, role, across: null }, how);
}

/** Arrow keys move along the line as it is seen, up and down to the line above and below. */
function move(root: HTMLElement, event: KeyboardEvent): void {
  const spans = Array.from(root.querySelectorAll<HTMLElement>("[data-index]"));
  const here = spans.indexOf(document.activeElement as HTMLElement);
  if (here < 0) return;
  const right = getComputedStyle(root).direction === "rtl" ? -1 : 1;
  const steps: { [key: string]: number } = { ArrowRight: right, ArrowLeft: -right, Home: -here, End: spans.length - 1 - here };
  if (event.key in steps) {
    spans[Math.max(0, Math.min(spans.length - 1, here + steps[event.key]!))]?.focus();
  } else if (event.key === "ArrowUp" || event.key === "ArrowDown") {
    neighbour(root, event.key === "ArrowDown" ? 1 : -1)?.focus();
  } else if (event.key === "Enter" || event.key === " ") {
    choose(root, Number(spans[here]!.dataset["index"]), "pin");
  } else return;
  event.preventDefault();
}

function neighbour(root: HTMLElement, by: number): HTMLElement | null {
  const lines = Array.from(document.querySelectorAll<HTMLElement>("#page [data-side]"));
  const line = lines[lines.indexOf(root) + by];
  return line?.querySelector<HTMLElement>('[tabindex="0"]') ?? line?.querySelector<HTMLElement>("[data-index]") ?? null;
}

export interface Mark {
  readonly chosen: number;
  /** One number for each token, or none; `dark` says how dark each is drawn. */
  readonly weights: readonly number[] | null;
  readonly dark: (weight: number) => number;
  readonly probabilities?: readonly number[] | null;
  readonly erased?: ReadonlySet<number>;
  readonly differs?: ReadonlySet<number>;
  /** Tokens from here on are not written yet. */
  readonly written?: number;
}

/** What was last put on a token: with hundreds of them, only what differs is written. */
interface Worn {
  readonly weight: number | undefined;
  readonly probability: number | undefined;
  readonly classes: string;
  readonly stop: boolean;
}

const worn = new WeakMap<Element, Worn>();

/** Numbers onto tokens: shade, exact weight, words for those who do not see. */
export function mark(root: HTMLElement, tokens: readonly Token[], given: Mark): void {
  const stop = given.chosen >= 0 && given.chosen < tokens.length ? given.chosen : 0;
  spansOf(root).forEach((span, index) => {
    const token = tokens[index];
    if (!token) return;
    const weight = given.weights?.[index];
    const dark = weight === undefined ? 0 : given.dark(weight);
    const probability = given.probabilities?.[index];
    const classes = classesOf(index, dark, given);
    const before = worn.get(span);
    const now: Worn = { weight, probability, classes, stop: index === stop };
    worn.set(span, now);
    if (before?.classes !== classes) wear(span, classes, index === given.chosen);
    if (before?.stop !== now.stop) span.tabIndex = now.stop ? 0 : -1;
    if (before && Object.is(before.weight, weight) && Object.is(before.probability, probability)) return;
    dress(span, { "aria-label": sentence(token, weight, probability), "data-weight": weight, "data-probability": probability });
    span.style.setProperty("--weight", dark.toFixed(3));
    span.style.setProperty("--sure", (probability ?? 1).toFixed(3));
  });
}

const STATES = ["chosen", "strong", "erased", "differs", "later"];

function classesOf(index: number, dark: number, given: Mark): string {
  const on = [index === given.chosen, dark > 0.5, given.erased?.has(index), given.differs?.has(index), index >= (given.written ?? Infinity)];
  return STATES.filter((_, i) => on[i]).join(" ");
}

function wear(span: HTMLElement, classes: string, chosen: boolean): void {
  span.classList.remove(...STATES);
  if (classes) span.classList.add(...classes.split(" "));
  span.setAttribute("aria-selected", String(chosen));
}

function sentence(token: Token, weight: number | undefined, probability: number | undefined): string {
  const said = [`${quoted(spelled(token))}`];
  if (probability !== undefined) said.push(`probability ${figure(probability)}`);
  if (weight !== undefined) said.push(`weight ${figure(weight)}`);
  return said.join(", ");
}
