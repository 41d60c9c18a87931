// A text and what stands for some of its stretches in, the text with them out, and where a stretch of one is in the other.

/** A stretch of the text as it was typed, and what stands there instead. */
export interface Replacement {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

export type Range = readonly [number, number];

export function touching([start, end]: Range, [from, to]: Range): boolean {
  return from < end && to > start;
}

/** One more; what it touches of the earlier ones is no longer there to be replaced. */
export function replacedBy(replace: readonly Replacement[], one: Replacement): Replacement[] {
  const apart = replace.filter((other) => !touching([one.start, one.end], [other.start, other.end]) && other.start !== one.start);
  return [...apart, one].sort((a, b) => a.start - b.start);
}

interface Edit {
  readonly old: Range;
  readonly now: Range;
  readonly replacement: Replacement;
}

function editsOf(replace: readonly Replacement[]): Edit[] {
  let grown = 0;
  return replace.map((replacement): Edit => {
    const { start, end, text } = replacement;
    const from = start + grown;
    grown += text.length - (end - start);
    return { old: [start, end], now: [from, from + text.length], replacement };
  });
}

/** The text with every stretch replaced; nothing that is put in can begin another column. */
export function edited(text: string, replace: readonly Replacement[]): string {
  return [...replace].reverse().reduce((made, { start, end, text: instead }) => made.slice(0, start) + instead.replace(/\t/g, " ") + made.slice(end), text);
}

/** Where a stretch of the old text stands in the new one; null = it was replaced. */
export function forward(replace: readonly Replacement[], range: Range): Range | null {
  return moved(editsOf(replace).map(({ old, now }) => [old, now]), range);
}

/** Where a stretch of the new text stood in the old one; null = it was put in. */
export function backward(replace: readonly Replacement[], range: Range): Range | null {
  return moved(editsOf(replace).map(({ old, now }) => [now, old]), range);
}

function moved(pairs: readonly (readonly [Range, Range])[], range: Range): Range | null {
  if (pairs.some(([from]) => touching(from, range))) return null;
  const by = pairs.reduce((shift, [from, to]) => (from[1] <= range[0] ? to[1] - from[1] : shift), 0);
  return [range[0] + by, range[1] + by];
}

/** What was put at a stretch of the old or of the new text. */
export function replacementAt(replace: readonly Replacement[], range: Range, text: "old" | "now"): Replacement | null {
  return editsOf(replace).find((edit) => touching(edit[text], range))?.replacement ?? null;
}
