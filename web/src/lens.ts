// A record and the state in, the one matrix that is shown out: who asks, what is looked at, and how dark a number is.
import { at, block, columnOf, largest, mean, rowOf, type Matrix } from "./matrix";
import { figure } from "./dom";
import type { AttentionMap, Record } from "./record";
import type { Selection, State, View } from "./state";
import type { Side } from "./wire";

export interface Lens {
  readonly matrix: Matrix;
  readonly queries: Side;
  readonly keys: Side;
  readonly title: string;
  /** The number drawn darkest. */
  readonly scale: number;
}

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
  const title = `${map.name} · ${one ? `head ${head}` : map.heads.length > 1 ? `mean of ${map.heads.length} heads` : "its only head"}`;
  return { matrix: one ?? mean(map.heads), queries: map.queries, keys: map.keys, title, scale: 1 };
}

/** Mean over heads and over the maps that go from target to source; of a single row, its block; else who looks at whom. */
function alignment(record: Record): Lens | null {
  const between = (queries: Side, keys: Side): AttentionMap[] =>
    record.maps.filter((map) => map.queries === queries && map.keys === keys && map.heads.length > 0);
  const means = (maps: AttentionMap[]): Matrix => mean(maps.map(({ heads }) => mean(heads)));
  const crossing = between("target", "source");
  if (crossing.length) return { matrix: means(crossing), queries: "target", keys: "source", title: whole(crossing), scale: 1 };
  const rows = between("row", "row");
  if (rows.length) return rowLens(record, means(rows), whole(rows));
  const selfish = between("source", "source");
  if (selfish.length) return { matrix: means(selfish), queries: "source", keys: "source", title: whole(selfish), scale: 1 };
  return null;
}

function whole(maps: readonly AttentionMap[]): string {
  const heads = maps.reduce((sum, map) => sum + map.heads.length, 0);
  return heads === 1 ? `attention · ${maps[0]!.name}` : `attention · mean of ${heads} heads`;
}

/** A text that is written on is looked back at whole; where a source was read first, the source is what counts. */
function rowLens(record: Record, matrix: Matrix, title: string): Lens {
  const source = record.source.tokens.length;
  const rows: [number, number] = [source, source + record.target.tokens.length];
  const on = record.model.task === "generate";
  const columns: [number, number] = [0, on ? rows[1] : source];
  return { matrix: block(matrix, rows, columns), queries: "target", keys: on ? "row" : "source", title, scale: 1 };
}

/** Which row or column of the lens a selection is; -1 = none of them. */
export function placeOn(side: Side, selection: Selection, record: Record): number {
  if (selection.side === side) return selection.index;
  if (selection.side === "target" && side === "source") return record.at?.[selection.index]?.[0] ?? -1;
  const source = record.source.tokens.length;
  if (side === "row") return selection.side === "source" ? selection.index : source + selection.index;
  if (selection.side !== "row") return -1;
  const index = side === "source" ? selection.index : selection.index - source;
  return index >= 0 && index < record[side].tokens.length ? index : -1;
}

export interface Pointed {
  readonly role: "query" | "key";
  readonly index: number;
}

/** The row (query) or column (key) of the lens that the selection points at. */
export function pointed(lens: Lens, selection: Selection | null, record: Record): Pointed | null {
  if (!selection) return null;
  const query = placeOn(lens.queries, selection, record);
  const key = placeOn(lens.keys, selection, record);
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
  const number = `(ρ = ${figure(worth).replace(/0$/, "")})`;
  if (worth < 0.3) return `attention and ${other} agree little here ${number}: do not read the picture as a reason`;
  if (worth < 0.6) return `attention and ${other} agree in part here ${number}: read the picture with care`;
  return `attention and ${other} agree well here ${number}`;
}
