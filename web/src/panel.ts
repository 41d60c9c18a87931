// What every view of one model's answer is drawn from.
import { backward, edited, replacementAt, touching, type Range, type Replacement } from "./edits";
import type { Line, Record, Token } from "./record";
import type { Selection, State } from "./state";

export interface Panel {
  readonly number: number;
  readonly state: State;
  /** What is shown: the changed run where there is one and it is asked for. */
  readonly record: Record;
  readonly original: Record;
  readonly changed: Record | null;
  /** The run whose source tokens the changed one numbers: the original, or that of the text with words replaced. */
  readonly basis: Record;
  readonly selected: Selection | null;
  /** Whether a server answers, so that something can be changed. */
  readonly live: boolean;
}

/** The ways in which a view can answer to a hand. */
export interface Act {
  set(change: Partial<State>): void;
  /** A pointer over something, a focus that moves on, or a click that holds it. */
  select(selection: Omit<Selection, "pinned">, how?: "over" | "focus" | "pin"): void;
  leave(): void;
  clear(): void;
}

/** The same place in another model's answer: the source by where it stands in the text, the rest by its number. */
export function translated(selection: Selection | null, from: Record, to: Record, panel: number): Selection | null {
  if (!selection || selection.panel === panel) return selection;
  if (selection.side === "source") {
    const start = from.source.tokens[selection.index]?.start ?? -1;
    const index = to.source.tokens.findIndex((token) => token.start <= start && start < Math.max(token.end, token.start + 1));
    return index < 0 ? null : { ...selection, panel, index, across: null };
  }
  const count = to.target.tokens.length + (selection.side === "row" ? to.source.tokens.length : 0);
  return selection.index < count ? { ...selection, panel, across: null } : null;
}

const ranges = new WeakMap<Record, readonly Range[]>();

/** Where in the text of the changed run something was erased; its tokens may be gone from the record. */
export function erasedRanges({ record, basis, changed }: Panel): readonly Range[] {
  if (record !== changed || !record.change?.erase.length || record.picture) return NOTHING;
  const known = ranges.get(record);
  if (known) return known;
  const found = record.change.erase.flatMap((index): Range[] => {
    const token = basis.source.tokens[index];
    return token && !token.sign ? [[token.start, token.end]] : [];
  });
  ranges.set(record, found);
  return found;
}

const NOTHING: readonly Range[] = [];

/** The tokens that stand for an erased one: where answers stand at places, an unknown one is left there. */
export function erasedTokens(panel: Panel): ReadonlySet<number> {
  if (panel.record.picture) return new Set(panel.record.change?.erase ?? []);
  const gone = erasedRanges(panel);
  const within = ({ start, end, sign }: Token): boolean => !sign && gone.some(([from, to]) => from === start && to === end);
  return new Set(panel.record.source.tokens.flatMap((token, index) => (within(token) ? [index] : [])));
}

/** The number that a source token of the run on show has in the original; -1 = it is not of that text. */
export function originalIndex({ record, original, state }: Panel, index: number): number {
  const token = record.source.tokens[index];
  const { replace } = state.whatIf;
  if (record === original || !token) return index;
  if (record.source.text !== edited(original.source.text, replace)) return -1; // of what was done before
  const stood = backward(replace, [token.start, token.end]);
  return stood ? original.source.tokens.findIndex((one) => one.start === stood[0] && one.end === stood[1] && one.sign === token.sign) : -1;
}

/** The tokens of words that were put in, of the run on show. */
export function replacedTokens(panel: Panel): ReadonlySet<number> {
  const { record, changed, original, state } = panel;
  if (record !== changed || !state.whatIf.replace.length || record.source.text !== edited(original.source.text, state.whatIf.replace)) return NO_TOKENS;
  return new Set(record.source.tokens.flatMap((_, index) => (replacementOf(panel, index) ? [index] : [])));
}

const NO_TOKENS: ReadonlySet<number> = new Set();

/** What was put in the place of the word that a source token of the run on show belongs to. */
export function replacementOf({ record, original, state }: Panel, index: number): Replacement | null {
  const token = record.source.tokens[index];
  return token && !token.sign ? replacementAt(state.whatIf.replace, [token.start, token.end], record === original ? "old" : "now") : null;
}

/** The tokens of a line that stand in any of these stretches of its text; the space before a word is not the word. */
export function tokensIn({ text, tokens }: Line, stretches: readonly Range[]): number[] {
  const within = ({ start, end, sign }: Token): boolean => {
    const inside = text.slice(start, end);
    const own: Range = inside.trim() ? [start + (inside.length - inside.trimStart().length), start + inside.trimEnd().length] : [start, end];
    return !sign && stretches.some((stretch) => touching(own, stretch));
  };
  return tokens.flatMap((token, index) => (within(token) ? [index] : []));
}
