// Lines and a query in, the nearest lines out with the words that carried the match.
import { figure, make, part, unchanged } from "./dom";
import type { Act } from "./panel";
import { unitOffsets } from "./record";
import type { State } from "./state";
import type { Hit, Weighed } from "./wire";

export function drawSearch(root: HTMLElement, state: State, hits: readonly Hit[] | null, error: string, act: Act): void {
  acts.set(root, act);
  const title = part(root, "h2", "title");
  if (!title.firstChild) title.append("search");
  const box = part(root, "div", "search-box");
  if (!box.firstChild) {
    const field = make("textarea", { id: "lines", rows: 8, dir: "auto", spellcheck: "false", "aria-label": "lines to search, one each", placeholder: "paste lines here, one each; the text above is what is looked for" });
    field.addEventListener("input", () => acts.get(root)!.set({ lines: field.value }));
    box.append(field, make("ol", { class: "hits", "aria-live": "polite", "aria-label": "nearest lines" }));
  }
  const field = box.querySelector("textarea")!;
  if (field.value !== state.lines) field.value = state.lines;
  const list = box.querySelector<HTMLElement>(".hits")!;
  if (unchanged(list, hits, error)) return;
  if (error) list.replaceChildren(make("li", { class: "problem" }, error));
  else list.replaceChildren(...(hits ?? []).map((hit) => hitLine(hit, heaviest(hits ?? []))));
}

const acts = new WeakMap<HTMLElement, Act>();

const LEAST = 0.02; // of the cosine: where no word carries more, none is drawn dark
const TINY = 0.04; // of the heaviest: less is no ink at all

/** What the heaviest word of all lines carries: one scale for all, so that a line that does not match looks like it. */
function heaviest(hits: readonly Hit[]): number {
  return Math.max(...hits.map(({ words }) => most(words)), LEAST);
}

export function most(words: readonly Weighed[]): number {
  return Math.max(LEAST, ...words.map(({ weight }) => weight));
}

function hitLine(hit: Hit, scale: number): HTMLElement {
  const level = make("span", { class: "level" });
  level.style.width = `${(100 * Math.max(0, hit.cosine)).toFixed(1)}%`;
  const line = make("li", { class: "hit", "data-hit": hit.number, "data-cosine": hit.cosine },
    make("span", { class: "hit-text", dir: "auto" }, ...inked(hit.text, hit.words, scale, "of the cosine")),
    make("span", { class: "track" }, level), make("span", { class: "value" }, figure(hit.cosine)));
  return line;
}

/** A text with its words the darker the more they carry; `scale` is drawn darkest, `of` says what of. */
export function inked(text: string, words: readonly Weighed[], scale: number, of: string): (Node | string)[] {
  const offsets = unitOffsets(text);
  const nodes: (Node | string)[] = [];
  let reached = 0;
  for (const { start, end, weight } of words) {
    const [from, to] = [offsets[start] ?? reached, offsets[end] ?? reached];
    if (from < reached || to <= from) continue;
    if (from > reached) nodes.push(text.slice(reached, from));
    const said = `carries ${figure(weight)} ${of}`;
    const dark = weight < TINY * scale ? 0 : weight / scale;
    const word = make("span", { class: dark > 0.5 ? "token strong" : "token", "data-weight": weight, "data-tip": said }, text.slice(from, to));
    word.style.setProperty("--weight", (0.9 * dark).toFixed(4));
    nodes.push(word);
    reached = to;
  }
  return [...nodes, text.slice(reached)];
}
