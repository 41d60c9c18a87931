// A panel of a caption in, the picture out with a grey veil where the chosen word did not look, and one small frame a word.
import { dress, figure, make, part, unchanged } from "./dom";
import { lensOf, pointed, weightsFrom, type Lens } from "./lens";
import { at, type Matrix } from "./matrix";
import type { Act, Panel } from "./panel";
import { wordAround, type Record } from "./record";

export function drawPicture(root: HTMLElement, panel: Panel, act: Act): void {
  const { record } = panel;
  root.hidden = !record.picture;
  if (!record.picture) return;
  hands.set(root, { panel, act });
  const lens = lensOf(record, panel.state);
  const stage = part(root, "div", "photo");
  const frames = part(root, "div", "frames");
  if (!unchanged(stage, record)) photo(stage, record, root);
  if (!unchanged(frames, record, lens)) smallFrames(frames, record, lens, root);
  const point = lens && pointed(lens, panel.selected, record);
  const weights = lens && point?.role === "query" ? weightsFrom(lens, point) : null;
  veil(stage.querySelector("canvas")!, weights, record);
  stage.querySelectorAll<HTMLElement>("[data-token]").forEach((cell, index) => {
    dress(cell, { "data-weight": weights?.[index], "aria-label": weights ? `place ${index}, weight ${figure(weights[index] ?? 0)}` : `place ${index}`, "data-tip": weights ? figure(weights[index] ?? 0) : null });
    cell.classList.toggle("chosen", point?.role === "key" && point.index === index);
  });
  const chosen = point?.role === "query" ? point.index : -1;
  frames.querySelectorAll<HTMLElement>("[data-tokens]").forEach((frame) => {
    dress(frame, { "aria-pressed": String(frame.dataset["tokens"]!.split(",").includes(String(chosen))) });
  });
}

const hands = new WeakMap<HTMLElement, { panel: Panel; act: Act }>();

function photo(stage: HTMLElement, record: Record, root: HTMLElement): void {
  const { data, width, height, rows, columns } = record.picture!;
  const image = make("img", { src: safe(data), alt: record.source.text, draggable: "false" });
  const grid = make("div", { class: "places" });
  grid.style.gridTemplate = `repeat(${rows}, 1fr) / repeat(${columns}, 1fr)`;
  for (let i = 0; i < rows * columns; i++) grid.append(make("span", { "data-token": `source-${i}`, "data-index": i }));
  stage.style.aspectRatio = `${width} / ${height}`;
  const pick = (event: Event, how: "over" | "focus" | "pin"): void => {
    const cell = (event.target as Element).closest<HTMLElement>("[data-index]");
    const { panel, act } = hands.get(root)!;
    if (cell) act.select({ panel: panel.number, side: "source", index: Number(cell.dataset["index"]), role: "key", across: null }, how);
  };
  grid.addEventListener("click", (event) => pick(event, "pin"));
  stage.replaceChildren(image, make("canvas", { class: "veil", "aria-hidden": true }), grid);
}

/** Only pictures that lie in the record itself are ever shown. */
function safe(data: string): string {
  return /^data:image\/(png|jpeg|webp|gif);base64,/.test(data) ? data : "";
}

const GRAIN = 24; // pixels of the veil to a place
const GREY = "#6a6d72"; // neither paper nor ink: pictures are light and dark, whatever the page is

/** Grey over the places, the thinner the more was looked at; what was looked at most has a light edge. */
function veil(canvas: HTMLCanvasElement, weights: readonly number[] | null, record: Record): void {
  const { rows, columns } = record.picture!;
  canvas.width = columns * GRAIN;
  canvas.height = rows * GRAIN;
  const context = canvas.getContext("2d");
  if (!context || !weights) return;
  const most = Math.max(1e-9, ...weights);
  const place = (i: number): [number, number] => [(i % columns) * GRAIN, Math.floor(i / columns) * GRAIN];
  const shares = weights.map((weight) => Math.max(0, weight) / most);
  context.fillStyle = GREY;
  shares.forEach((share, i) => {
    context.globalAlpha = 0.85 * (1 - share);
    context.fillRect(...place(i), GRAIN, GRAIN);
  });
  context.strokeStyle = "#fff";
  context.lineWidth = 2;
  shares.forEach((share, i) => {
    const [x, y] = place(i);
    context.globalAlpha = share;
    if (share > 0.5) context.strokeRect(x + 1, y + 1, GRAIN - 2, GRAIN - 2);
  });
}

/** Target tokens word by word: tokens between white space belong together. */
function words(record: Record): number[][] {
  const groups: number[][] = [];
  const seen = new Set<number>();
  record.target.tokens.forEach((token, index) => {
    if (token.sign || seen.has(index)) return;
    const group = wordAround(record.target, index).tokens.filter((one) => !seen.has(one));
    group.forEach((one) => seen.add(one));
    if (record.target.text.slice(token.start, token.end).trim() || group.length > 1) groups.push(group);
  });
  return groups;
}

function meanRows(matrix: Matrix, rows: readonly number[]): number[] {
  return Array.from({ length: matrix.columns }, (_, column) => rows.reduce((sum, row) => sum + at(matrix, row, column), 0) / rows.length);
}

function smallFrames(frames: HTMLElement, record: Record, lens: Lens | null, root: HTMLElement): void {
  if (!lens || lens.queries !== "target") return frames.replaceChildren();
  frames.replaceChildren(...words(record).map((tokens) => {
    const [first, last] = [record.target.tokens[tokens[0]!]!, record.target.tokens[tokens.at(-1)!]!];
    const text = record.target.text.slice(first.start, last.end).trim();
    const canvas = make("canvas", { class: "veil", "aria-hidden": true });
    veil(canvas, meanRows(lens.matrix, tokens), record);
    const small = make("span", { class: "small" }, make("img", { src: safe(record.picture!.data), alt: "" }), canvas);
    small.style.aspectRatio = `${record.picture!.width} / ${record.picture!.height}`;
    const frame = make("button", { type: "button", class: "frame", "data-tokens": tokens.join(","), "aria-label": `where “${text}” looked` }, small, make("span", { dir: "auto" }, text));
    const pick = (how: "over" | "focus" | "pin"): void => {
      const { panel, act } = hands.get(root)!;
      act.select({ panel: panel.number, side: "target", index: tokens[0]!, role: "query", across: null }, how);
    };
    frame.addEventListener("pointerenter", () => pick("over"));
    frame.addEventListener("pointerleave", () => hands.get(root)?.act.leave());
    frame.addEventListener("focus", () => frame.matches(":focus-visible") && pick("focus"));
    frame.addEventListener("click", () => pick("pin"));
    return frame;
  }));
}
