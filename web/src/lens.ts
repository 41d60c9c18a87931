// A record and the state in, the one matrix that is shown out: who asks, what is looked at, and how dark a number is.
import { at, block, columnOf, fromLists, largest, mean, rowOf, type Matrix } from "./matrix";
import { elsewhere, type AttentionMap, type Record } from "./record";
import type { Selection, State, View } from "./state";
import type { Side } from "./wire";

export interface Lens {
  readonly matrix: Matrix;
  readonly queries: Side;
  readonly keys: Side;
  readonly title: string;
  /** The number drawn darkest. */
  readonly scale: number;
  /** Whether nothing of it is on: there is nothing to see, and that is said. */
  readonly off?: boolean;
}

const OFF = " · switched off: nothing was looked at";

const WORDS: { readonly [view in View]: string } = {
  attention: "attention",
  rollout: "attention through all layers (rollout)",
  gradient: "gradient × input",
  erasure: "log probability lost when a source token is erased",
};

const lenses = new WeakMap<Record, Map<string, Lens | null>>();

/** The same record and the same choice give the same object, so that a drawing knows it has nothing to do. */
export function lensOf(record: Record, state: Pick<State, "view" | "map">): Lens | null {
  const name = `${state.view} ${state.map?.name} ${state.map?.head} ${record.derived !== null}`;
  let known = lenses.get(record);
  if (!known) lenses.set(record, (known = new Map()));
  if (!known.has(name)) known.set(name, focus(record, state));
  return known.get(name) ?? null;
}

function focus(record: Record, state: Pick<State, "view" | "map">): Lens | null {
  if (state.view !== "attention") return derivedLens(record, state.view);
  const map = state.map && record.maps.find(({ name }) => name === state.map?.name);
  return map ? mapLens(map, state.map?.head ?? null) : alignment(record);
}

function derivedLens(record: Record, view: Exclude<View, "attention">): Lens | null {
  const matrix = record.derived?.[view] ?? null;
  if (!matrix || matrix.rows === 0) return null;
  return { matrix, queries: "target", keys: "source", title: WORDS[view], scale: view === "rollout" ? 1 : largest(matrix) || 1 };
}

function mapLens(map: AttentionMap, head: number | null): Lens {
  const one = head === null ? undefined : map.heads[head];
  const on = map.heads.length - map.off.size;
  const off = one ? map.off.has(head!) : on === 0;
  const title = `${map.name} · ${one ? `head ${head}` : map.heads.length > 1 ? `mean of ${on || map.heads.length} heads` : "its only head"}${off ? OFF : ""}`;
  return { matrix: one ?? meanOf(map), queries: map.queries, keys: map.keys, title, scale: 1, off };
}

/** The mean of the heads that are on. */
export function meanOf({ heads, off }: AttentionMap): Matrix {
  return mean(off.size < heads.length ? heads.filter((_, head) => !off.has(head)) : heads);
}

/** Mean over heads and over the maps that go from target to source; of a single row, its block; else who looks at whom. */
function alignment(record: Record): Lens | null {
  const between = (queries: Side, keys: Side): AttentionMap[] =>
    record.maps.filter((map) => map.queries === queries && map.keys === keys && map.heads.length > 0);
  const means = (maps: AttentionMap[]): Matrix => mean((maps.some(lit) ? maps.filter(lit) : maps).map(meanOf));
  const crossing = between("target", "source");
  if (crossing.length) return { matrix: means(crossing), queries: "target", keys: "source", title: whole(crossing), scale: 1, off: !crossing.some(lit) };
  const rows = between("row", "row");
  if (rows.length) return { ...rowLens(record, means(rows), whole(rows)), off: !rows.some(lit) };
  const selfish = between("source", "source");
  if (selfish.length && record.structure === "read" && record.target.tokens.length)
    return { matrix: answering(record, means(selfish)), queries: "target", keys: "source", title: whole(selfish), scale: 1, off: !selfish.some(lit) };
  if (selfish.length) return { matrix: means(selfish), queries: "source", keys: "source", title: whole(selfish), scale: 1, off: !selfish.some(lit) };
  return null;
}

/** Whether a head of it is on. */
function lit(map: AttentionMap): boolean {
  return map.off.size < map.heads.length;
}

function whole(maps: readonly AttentionMap[]): string {
  const heads = maps.reduce((sum, map) => sum + map.heads.length, 0);
  const on = maps.reduce((sum, map) => sum + map.heads.length - map.off.size, 0);
  return (heads === 1 ? `attention · ${maps[0]!.name}` : `attention · mean of ${on || heads} heads`) + (on ? "" : OFF);
}

/** Where the tokens that an answer is read off looked: those it stands at, the sign for the whole, or all of them. */
function answering(record: Record, matrix: Matrix): Matrix {
  const last = record.source.tokens.at(-1);
  const summary = last?.sign && last.text === "<class>" ? rowOf(matrix, matrix.rows - 1) : columnMeans(matrix);
  return fromLists(record.target.tokens.map((_, index) => {
    const place = record.at?.[index];
    return place ? rowOf(matrix, place[1]) : summary;
  }));
}

function columnMeans(matrix: Matrix): number[] {
  return Array.from({ length: matrix.columns }, (_, column) => columnOf(matrix, column).reduce((sum, weight) => sum + weight, 0) / matrix.rows);
}

/** A text that is written on is looked back at whole; where a source was read first, the source is what counts. */
function rowLens(record: Record, matrix: Matrix, title: string): Lens {
  const rows: [number, number] = [record.first, record.first + record.target.tokens.length];
  const on = record.model.task === "generate";
  const columns: [number, number] = [0, on ? matrix.columns : record.source.tokens.length];
  return { matrix: block(matrix, rows, columns), queries: "target", keys: on ? "row" : "source", title, scale: 1 };
}

export interface Pointed {
  readonly role: "query" | "key";
  readonly index: number;
}

/** The row (query) or column (key) of the lens that the selection points at. */
export function pointed(lens: Lens, selection: Selection | null, record: Record): Pointed | null {
  if (!selection) return null;
  const query = elsewhere(record, selection.side, selection.index, lens.queries, "query");
  const key = elsewhere(record, selection.side, selection.index, lens.keys, "key");
  const asked = (selection.role === "query" && query >= 0) || key < 0 ? query : -1;
  if (asked >= 0 && asked < lens.matrix.rows) return { role: "query", index: asked };
  if (key >= 0 && key < lens.matrix.columns) return { role: "key", index: key };
  return null;
}

/** The weights that go out from, or come in to, what is pointed at. */
export function weightsFrom(lens: Lens, point: Pointed): number[] {
  return point.role === "query" ? rowOf(lens.matrix, point.index) : columnOf(lens.matrix, point.index);
}

export function weightAt(lens: Lens, query: number, key: number): number {
  return at(lens.matrix, query, key);
}

/** From 0 (paper) to 1 (ink). Small weights are lifted a little so that they can be seen at all. */
export function shade(lens: Lens, weight: number): number {
  const share = Math.max(0, Math.min(1, weight / lens.scale));
  return share ** 0.7;
}

/** What attention is worth as a reason here, said in one sentence. */
export function agreementSentence(record: Record): string {
  const agreement = record.derived?.agreement;
  const worth = agreement?.erasure ?? agreement?.gradient;
  if (!agreement || worth == null) return "";
  const other = agreement.erasure != null ? "erasure" : "gradient";
  const number = `(ρ = ${worth.toFixed(2).replace("-", "−")})`;
  if (worth < 0.3) return `attention and ${other} agree little here ${number}: do not read the picture as a reason`;
  if (worth < 0.6) return `attention and ${other} agree in part here ${number}: read the picture with care`;
  return `attention and ${other} agree well here ${number}`;
}
