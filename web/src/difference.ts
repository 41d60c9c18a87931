// Two records in, the tokens of each that the other does not have out: the longest common run of tokens is what stayed.
import type { Record } from "./record";

export interface Difference {
  readonly before: ReadonlySet<number>;
  readonly after: ReadonlySet<number>;
}

const known = new WeakMap<Record, WeakMap<Record, Difference>>();

export function differences(original: Record, changed: Record): Difference {
  let others = known.get(original);
  if (!others) known.set(original, (others = new WeakMap()));
  let found = others.get(changed);
  if (!found) others.set(changed, (found = differing(texts(original), texts(changed))));
  return found;
}

function texts(record: Record): string[] {
  return record.target.tokens.map((token) => token.text);
}

export function differing(before: readonly string[], after: readonly string[]): Difference {
  const width = after.length + 1;
  const common = new Uint32Array((before.length + 1) * width);
  for (let i = before.length - 1; i >= 0; i--)
    for (let j = after.length - 1; j >= 0; j--)
      common[i * width + j] =
        before[i] === after[j]
          ? common[(i + 1) * width + j + 1]! + 1
          : Math.max(common[(i + 1) * width + j]!, common[i * width + j + 1]!);
  const gone = new Set(before.keys());
  const come = new Set(after.keys());
  for (let i = 0, j = 0; i < before.length && j < after.length; ) {
    if (before[i] === after[j]) {
      gone.delete(i++);
      come.delete(j++);
    } else if (common[(i + 1) * width + j]! >= common[i * width + j + 1]!) i++;
    else j++;
  }
  return { before: gone, after: come };
}
