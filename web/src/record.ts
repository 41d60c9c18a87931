// A record as JSON in, a record to draw from out: offsets in UTF-16 units, maps as flat numbers.
import { fromLists, type Matrix } from "./matrix";
import type { Alternative, Answer, BeamNode, Change, ModelName, Packed, PerHead, Picture, Side, Weighed, WireMap, WireRecord, WireToken } from "./wire";

export interface Token {
  readonly text: string;
  readonly start: number;
  readonly end: number;
  readonly id: number;
  /** A sign such as <end>, which stands nowhere in the text. */
  readonly sign: boolean;
}

export interface AttentionMap {
  readonly name: string;
  readonly queries: Side;
  readonly keys: Side;
  /** What each looked at; of a head that was switched off, nothing. */
  readonly heads: readonly Matrix[];
  readonly off: ReadonlySet<number>;
}

export interface Derived {
  readonly erasure: Matrix;
  readonly gradient: Matrix;
  readonly rollout: Matrix | null;
  readonly entropy: readonly PerHead[];
  readonly importance: readonly PerHead[];
  readonly agreement: { readonly erasure: number | null; readonly gradient: number | null } | null;
}

export interface Line {
  readonly text: string;
  readonly tokens: readonly Token[];
}

export interface Record {
  readonly model: ModelName;
  readonly structure: "pair" | "row" | "read";
  readonly picture: Picture | null;
  readonly source: Line;
  readonly target: Line;
  readonly written: Line;
  readonly first: number;
  readonly at: readonly (readonly [number, number])[] | null;
  readonly probabilities: readonly number[];
  readonly copied?: readonly number[] | null;
  readonly alternatives: readonly (readonly Alternative[])[];
  readonly confidence: number;
  readonly score: number;
  readonly answers: readonly Answer[];
  readonly chances: readonly (readonly [string, number])[];
  readonly maps: readonly AttentionMap[];
  readonly beam: readonly BeamNode[] | null;
  readonly seconds: { readonly [part: string]: number };
  readonly derived: Derived | null;
  readonly change: Change | null;
  readonly carried?: readonly Weighed[];
}

/** Where each code point of a text begins in UTF-16 units, and the end. */
export function unitOffsets(text: string): number[] {
  const offsets: number[] = [];
  let unit = 0;
  for (const point of text) {
    offsets.push(unit);
    unit += point.length;
  }
  offsets.push(unit);
  return offsets;
}

function readLine(text: string, tokens: readonly WireToken[]): Line {
  const offsets = unitOffsets(text);
  const unit = (point: number): number => offsets[Math.max(0, Math.min(point, offsets.length - 1))] ?? 0;
  return {
    text,
    tokens: tokens.map(({ text, start, end, id }) => ({ text, id, start: unit(start), end: unit(end), sign: start >= end })),
  };
}

function unpack(base64: string): Float32Array {
  const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
  const view = new DataView(bytes.buffer);
  return Float32Array.from({ length: bytes.length / 4 }, (_, i) => view.getFloat32(4 * i, true));
}

function readMap(map: WireMap, change: Change | null): AttentionMap {
  const { name, queries, keys } = map;
  const off = new Set((change?.off ?? []).filter(([one]) => one === name).map(([, head]) => head));
  return { name, queries, keys, off, heads: readHeads(map.weights).map((head, number) => (off.has(number) ? nothingOf(head) : head)) };
}

function readHeads(weights: WireMap["weights"]): Matrix[] {
  if (Array.isArray(weights)) return weights.map(fromLists);
  const [heads, rows, columns] = weights.shape as [number, number, number];
  const all = unpack(weights.float32);
  const size = rows * columns;
  return Array.from({ length: heads }, (_, number) => ({ rows, columns, values: all.subarray(number * size, (number + 1) * size) }));
}

/** A head that is switched off reports where it would have looked: nothing of that went on. */
function nothingOf({ rows, columns }: Matrix): Matrix {
  return { rows, columns, values: new Float32Array(rows * columns) };
}

function readTable(table: number[][] | Packed | null | undefined): Matrix | null {
  if (!table) return null;
  if (Array.isArray(table)) return fromLists(table);
  const [rows, columns] = table.shape as [number, number];
  return { rows, columns, values: unpack(table.float32) };
}

const NOTHING: Matrix = { rows: 0, columns: 0, values: [] };

function readDerived(derived: WireRecord["derived"]): Derived | null {
  if (!derived) return null;
  const { entropy, importance, agreement } = derived;
  return {
    erasure: readTable(derived.erasure) ?? NOTHING,
    gradient: readTable(derived.gradient) ?? NOTHING,
    rollout: readTable(derived.rollout),
    entropy: entropy ?? [],
    importance: importance ?? [],
    agreement: agreement && { erasure: agreement.erasure ?? null, gradient: agreement.gradient ?? null },
  };
}

export function readRecord(wire: WireRecord): Record {
  return {
    ...wire,
    source: readLine(wire.text, wire.source),
    target: readLine(wire.output, wire.target),
    written: readLine(wire.output, wire.written),
    maps: wire.maps.map((map) => readMap(map, wire.change)),
    derived: readDerived(wire.derived),
  };
}

/** Tokens of one side over their text; a row is the source followed by what is written. */
export function lineOf(record: Record, side: Side): Line {
  if (side !== "row") return record[side];
  const known = rows.get(record) ?? rowOf(record);
  rows.set(record, known);
  return known;
}

const rows = new WeakMap<Record, Line>();

function rowOf(record: Record): Line {
  const joint = record.model.task === "generate" ? "" : "\t";
  const shift = record.source.text.length + joint.length;
  const moved = record.written.tokens.map((token) => ({ ...token, start: token.start + shift, end: token.end + shift }));
  const fed = record.written.text.slice(0, Math.max(0, ...record.written.tokens.map(({ end }) => end))); // the last token is fed to nobody
  return { text: record.source.text + joint + fed, tokens: [...record.source.tokens, ...moved] };
}

/** What stands in `written` before the first target token: a sign, or nothing. */
function before(record: Record): number {
  return record.written.tokens.length - (record.target.tokens.length - 1);
}

/** The same token on another side; -1 = it is not there. A query of a row is known by the token that it foresees. */
export function elsewhere(record: Record, from: Side, index: number, to: Side, role: "query" | "key"): number {
  if (from === to) return index;
  const source = record.source.tokens.length;
  if (from === "target" && to === "source") return record.at?.[index]?.[1] ?? -1;
  const row = inRow(record, from, index, role);
  const place = to === "row" ? row : to === "source" ? (row < source ? row : -1) : row - source - (to === "written" ? 0 : before(record));
  const found = to === "target" && role === "query" && record.structure === "row" ? row - record.first : place;
  return found >= 0 && found < lineOf(record, to).tokens.length ? found : -1;
}

function inRow(record: Record, from: Side, index: number, role: "query" | "key"): number {
  if (from === "row" || from === "source") return index;
  const source = record.source.tokens.length;
  if (from === "written") return source + index;
  return role === "query" && record.structure === "row" ? record.first + index : source + before(record) + index;
}

/** Whether a head can be switched off: not the weights by which a head pools what was read into one vector. */
export function switchable(map: string): boolean {
  return map !== "head";
}

const SIGNS = 7; // <pad>, <start>, <end>, <separator>, <mask>, <unknown>, <class>: the first ids of every vocabulary

/** Whether a model can be made to write this: its signs are not text. */
export function writable(id: number): boolean {
  return id >= SIGNS;
}

/** A token as it is shown: white space is drawn, signs stay as they are. */
export function spelled(token: Token): string {
  return token.text.replace(/\n|^<U\+000A>$/g, "⏎").replace(/\t/g, "⇥").replace(/^[ \u00a0]+$/g, "␣") || "∅";
}

/** A token in quotation marks, kept apart from the direction of what stands around it. */
export function quoted(text: string): string {
  return `“\u2068${text}\u2069”`;
}

/** The stretch between white space around a token: what is erased or replaced as a word. */
export function wordAround(line: Line, index: number): { start: number; end: number; tokens: number[] } {
  const token = line.tokens[index];
  if (!token || token.sign) return { start: 0, end: 0, tokens: token ? [index] : [] };
  const inside = line.text.slice(token.start, token.end);
  const first = token.start + (inside.length - inside.trimStart().length);
  if (!inside.trim()) return { start: token.start, end: token.end, tokens: [index] };
  let start = first;
  let end = Math.max(first, token.end - (inside.length - inside.trimEnd().length));
  while (start > 0 && joins(line.text[start - 1]!) && joins(line.text[start]!)) start--;
  while (end < line.text.length && joins(line.text[end]!) && joins(line.text[end - 1]!)) end++;
  const touches = ({ start: from, end: to, sign }: Token): boolean => !sign && from < end && to > start;
  return { start, end, tokens: line.tokens.flatMap((other, i) => (touches(other) ? [i] : [])) };
}

/** Whether a letter belongs to the word beside it: scripts without spaces have words of one token. */
function joins(letter: string): boolean {
  return !/[\s\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]/u.test(letter);
}
