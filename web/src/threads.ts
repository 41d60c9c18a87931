// A panel in, the output over the source out, with lines between them whose thickness is the weight.
import { select } from "d3-selection";
import { linkVertical } from "d3-shape";
import { dress, figure, make, part, unchanged } from "./dom";
import { lensOf, pointed, shade, weightAt, weightsFrom, type Lens, type Pointed } from "./lens";
import { rowOf } from "./matrix";
import { erasedRanges, erasedTokens, replacedTokens, type Act, type Panel } from "./panel";
import { elsewhere, lineOf, quoted, spelled, type Record } from "./record";
import { OWN_FORM } from "./answers";
import { drawTokens, mark, spansOf, type TokenLine } from "./tokens";
import { differences } from "./difference";
import type { Side } from "./wire";

interface Thread {
  readonly query: number;
  readonly key: number;
  readonly weight: number;
  readonly dark: number;
}

const LABELS: { readonly [side in Side]: string } = { target: "output", source: "source", written: "written before", row: "source and output" };
const SHORT = 40; // letters that fit on one line when they are drawn large
const NONE: TokenLine["gone"] = [];
const FEW = 600; // lines of the glance, before anything is chosen

/** The lines of text of the figure from top to bottom, and between which two of them threads are drawn. */
function linesOf(record: Record, lens: Lens | null, gone: TokenLine["gone"]): { lines: TokenLine[]; between: [number, number] } {
  const line = (side: Side, role: "query" | "key", copy = false): TokenLine => ({
    side, role, copy, line: lineOf(record, side), gone: side === "source" || side === "row" ? gone : NONE, label: `${LABELS[side]}${copy ? ", looked at" : ""}`,
  });
  const spoken = record.target.tokens.length > 0 && (lens?.queries === "target" || !OWN_FORM.has(record.model.task));
  const output = spoken ? [line("target", "query")] : [];
  if (!lens) return { lines: [...output, line("source", "key")], between: [0, output.length] };
  if (lens.queries === "target" && (lens.keys === "source" || lens.keys === "row"))
    return { lines: [...output, line(lens.keys, "key")], between: [0, output.length] };
  if (lens.queries === "target")
    return { lines: [...output, line(lens.keys, "key", lens.keys === "target"), line("source", "key")], between: [0, 1] };
  const first = output.length;
  return { lines: [...output, line(lens.queries, "query"), line(lens.keys, "key", true)], between: [first, first + 1] };
}

export function drawThreads(root: HTMLElement, panel: Panel, act: Act): void {
  const { record, state } = panel;
  const lens = record.picture ? null : lensOf(record, state);
  const { lines, between } = linesOf(record, lens, erasedRanges(panel));
  const shown = record.picture ? lines.slice(0, 1) : lines;
  const figureBox = part(root, "div", "weave");
  figureBox.classList.toggle("short", shown.every(({ line }) => line.text.length <= SHORT));
  const rows = rowBoxes(figureBox, shown, between, lens !== null || state.view !== "attention");
  shown.forEach((line, i) => drawTokens(rows[i]!, line, panel, act));
  const top = rows[between[0]];
  const bottom = rows[between[1]];
  const woven = lens && top && bottom && top !== bottom ? measured(figureBox, top, bottom) : null; // before anything is marked
  const wrapped = woven !== null && (wraps(woven.from) || wraps(woven.to));
  const point = lens && pointed(lens, panel.selected, record);
  shown.forEach((line, i) => markLine(rows[i]!, line, i === between[0] ? "query" : i === between[1] ? "key" : null, panel, lens, point));
  if (lens && woven) drawPaths(figureBox, woven, lens, point, panel);
  else figureBox.querySelector("svg")?.replaceChildren();
  readout(part(root, "p", "readout", { "aria-live": "polite" }), panel, lens, point, wrapped);
}

function rowBoxes(box: HTMLElement, lines: readonly TokenLine[], between: [number, number], woven: boolean): HTMLElement[] {
  const have = Array.from(box.querySelectorAll<HTMLElement>(":scope > .strand"));
  while (have.length > lines.length) have.pop()!.remove();
  while (have.length < lines.length) {
    const strand = make("div", { class: "strand" }, make("span", { class: "side" }), make("div", { class: "words" }));
    box.append(strand);
    have.push(strand);
  }
  return have.map((strand, i) => {
    const { side, copy } = lines[i]!;
    strand.classList.toggle("under", woven && i === between[1] && between[0] !== between[1]);
    strand.querySelector(".side")!.textContent = copy ? "looked at" : LABELS[side];
    const words = strand.querySelector<HTMLElement>(".words")!;
    dress(words, { id: side === "target" && !copy && !box.closest('[data-panel]:not([data-panel="0"])') ? "output" : null });
    return words;
  });
}

function markLine(words: HTMLElement, line: TokenLine, part: "query" | "key" | null, panel: Panel, lens: Lens | null, point: Pointed | null): void {
  const { record, selected, state } = panel;
  const source = record.source.tokens.length;
  const facing = lens && point && part && part !== point.role ? weightsFrom(lens, point) : null;
  const own = point && part === point.role ? point.index : facing || !selected ? -1 : elsewhere(record, selected.side, selected.index, line.side, line.role);
  const probabilities = line.side === "target" ? record.probabilities : null;
  mark(words, line.line.tokens, {
    chosen: own,
    weights: facing,
    dark: (weight) => (lens ? shade(lens, weight) : 0),
    probabilities,
    ...(line.side === "source" || line.side === "row" ? { erased: erasedTokens(panel), differs: replacedTokens(panel) } : {}),
    ...(line.side === "target" && panel.changed ? { differs: differences(panel.original, panel.changed)[record === panel.changed ? "after" : "before"] } : {}),
    ...(line.side === "target" && state.step !== null ? { written: state.step + 1 } : {}),
    ...(line.side === "row" && state.step !== null ? { written: source + state.step + 1 } : {}),
    ...(line.side === "written" && state.step !== null ? { written: state.step + 1 } : {}),
  });
}

/** Nothing chosen: the strongest lines of each row, thin, unless other text is in their way. Something chosen: all of its lines. */
function threadsOf(lens: Lens, point: Pointed | null, written: number, wrapped: boolean): Thread[] {
  const thread = (query: number, key: number): Thread => {
    const weight = weightAt(lens, query, key);
    return { query, key, weight, dark: shade(lens, weight) };
  };
  const { rows, columns } = lens.matrix;
  if (point?.role === "query")
    return Array.from({ length: columns }, (_, key) => thread(point.index, key)).filter(({ dark }) => dark > 0.015);
  if (point) return Array.from({ length: rows }, (_, query) => thread(query, point.index)).filter(({ dark }) => dark > 0.015);
  if (wrapped) return [];
  const each = Math.max(1, Math.min(3, Math.floor(FEW / Math.max(1, rows))));
  return Array.from({ length: Math.min(rows, written) }, (_, query) =>
    rowOf(lens.matrix, query)
      .map((_, key) => thread(query, key))
      .filter(({ dark }) => dark > 0.2)
      .sort((a, b) => b.weight - a.weight)
      .slice(0, each),
  ).flat();
}

interface Spot {
  readonly x: number;
  readonly top: number;
  readonly bottom: number;
}

interface Measured {
  readonly width: number;
  readonly height: number;
  readonly from: readonly Spot[];
  readonly to: readonly Spot[];
}

const measures = new WeakMap<HTMLElement, Measured>();

/** Where the tokens of both lines stand within the figure; asked of the browser only when something has moved. */
function measured(figureBox: HTMLElement, top: HTMLElement, bottom: HTMLElement): Measured {
  const box = figureBox.getBoundingClientRect();
  const known = measures.get(figureBox);
  const ends = [top.firstChild, top.lastChild, bottom.firstChild, bottom.lastChild];
  const still = unchanged(bottom.parentElement!, ...ends, box.width, box.height, top.className, figureBox.className);
  if (known && still) return known;
  const find = (box: DOMRect): Measured => ({ width: box.width, height: box.height, from: spots(top, box), to: spots(bottom, box) });
  const first = find(box);
  const wrapped = wraps(first.from) || wraps(first.to);
  const found = wrapped === figureBox.classList.contains("wrapped") ? first : (figureBox.classList.toggle("wrapped"), find(figureBox.getBoundingClientRect()));
  measures.set(figureBox, found);
  return found;
}

/** Whether a line of tokens takes more than one line of text. */
function wraps(places: readonly Spot[]): boolean {
  return places.some(({ top }) => top > places[0]!.bottom);
}

function spots(words: HTMLElement, box: DOMRect): Spot[] {
  return spansOf(words).map((span) => {
    const rect = span.getClientRects()[0] ?? span.getBoundingClientRect();
    return { x: rect.left + rect.width / 2 - box.left, top: rect.top - box.top, bottom: rect.bottom - box.top };
  });
}

function drawPaths(figureBox: HTMLElement, places: Measured, lens: Lens, point: Pointed | null, panel: Panel): void {
  let picture = figureBox.querySelector<SVGSVGElement>(":scope > svg");
  if (!picture) {
    picture = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    dress(picture, { class: "threads", "aria-hidden": true });
    figureBox.prepend(picture);
  }
  const written = panel.state.step === null || lens.queries !== "target" ? Infinity : panel.state.step + 1;
  if (unchanged(picture, lens, point?.role, point?.index, places, written)) return;
  const { width, height, from, to } = places;
  dress(picture, { width, height, viewBox: `0 0 ${width} ${height}` });
  const link = linkVertical<unknown, { source: [number, number]; target: [number, number] }, [number, number]>();
  const curve = ({ query, key }: Thread): string => {
    const a = from[query];
    const b = to[key];
    return a && b ? link({ source: [a.x, a.bottom - 1], target: [b.x, b.top + 1] }) ?? "" : "";
  };
  select(picture)
    .selectAll<SVGPathElement, Thread>("path")
    .data(threadsOf(lens, point, written, wraps(from) || wraps(to)))
    .join("path")
    .attr("d", curve)
    .attr("class", point ? "thread" : "thread faint")
    .attr("stroke-width", ({ dark }) => (0.6 + 6.4 * dark).toFixed(2))
    .attr("stroke-opacity", ({ dark }) => (point ? 0.18 + 0.72 * dark : 0.08 + 0.4 * dark).toFixed(3));
}

/** The numbers of what is chosen, in words and in one place. */
function readout(place: HTMLElement, panel: Panel, lens: Lens | null, point: Pointed | null, wrapped: boolean): void {
  const said = lens && point ? sentenceOf(panel, lens, point) : wrapped ? "point at a word, and its lines are drawn" : "";
  if (place.textContent !== said) place.textContent = said;
}

function sentenceOf(panel: Panel, lens: Lens, point: Pointed): string {
  const queries = lineOf(panel.record, lens.queries).tokens;
  const keys = lineOf(panel.record, lens.keys).tokens;
  const [own, others] = point.role === "query" ? [queries, keys] : [keys, queries];
  const name = own[point.index];
  if (!name) return "";
  if (lens.off) return `${quoted(spelled(name))} ${point.role === "query" ? "looked at" : "was looked at by"} nothing: switched off`;
  const verb = panel.state.view === "attention" ? (point.role === "query" ? "looked at" : "was looked at by") : point.role === "query" ? "rests on" : "carried";
  const across = panel.selected?.across;
  const best = weightsFrom(lens, point)
    .map((weight, i) => ({ weight, i }))
    .sort((a, b) => b.weight - a.weight)
    .slice(0, 5);
  const chosen = across == null ? best : [{ weight: weightsFrom(lens, point)[across] ?? 0, i: across }];
  const list = chosen.map(({ weight, i }) => `${quoted(others[i] ? spelled(others[i]!) : "?")} ${figure(weight)}`);
  return `${quoted(spelled(name))} ${verb} ${list.join(" · ")}`;
}
