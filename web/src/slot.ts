// Questions in, the answer to the latest of them out: an older one is dropped, the last answer stays until the next.

export interface Slot<Answer> {
  /** What was last asked for; the same question is not asked again. */
  key: string;
  answer: Answer | null;
  /** The question that `answer` answers. */
  answered: string;
  error: string;
  busy: boolean;
  stop: () => void;
}

export function slot<Answer>(): Slot<Answer> {
  return { key: "", answer: null, answered: "", error: "", busy: false, stop: () => undefined };
}

export function ask<Answer>(
  place: Slot<Answer>, key: string, delay: number, question: (signal: AbortSignal) => Promise<Answer>, done: () => void,
): void {
  if (place.key === key) return;
  place.stop();
  place.key = key;
  const control = new AbortController();
  const timer = window.setTimeout(async () => {
    place.busy = true;
    done();
    try {
      const answer = await question(control.signal);
      if (place.key !== key) return;
      Object.assign(place, { answer, answered: key, error: "" });
    } catch (error) {
      if (control.signal.aborted) return;
      place.error = error instanceof Error ? error.message : String(error);
    }
    if (place.key !== key) return;
    place.busy = false;
    done();
  }, delay);
  place.stop = () => {
    clearTimeout(timer);
    control.abort();
    place.busy = false;
  };
}

/** Nothing is asked any more and nothing is known. */
export function empty<Answer>(place: Slot<Answer>): void {
  place.stop();
  Object.assign(place, slot<Answer>());
}
