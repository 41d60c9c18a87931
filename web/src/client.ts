// A wish in, an answer of the server out, or an error that says what was wrong.
import type { Change, Hit, Lesson, ModelCard, WireRecord } from "./wire";
import type { Sampling } from "./state";

export interface LookWish {
  text: string | string[];
  picture?: string;
  model: string;
  beam?: number;
  sample?: Partial<Sampling>;
  change?: Change;
  derive?: boolean;
  packed?: boolean;
}

async function answered<T>(response: Response): Promise<T> {
  const said: unknown = await response.json().catch(() => null);
  if (response.ok && said !== null) return said as T;
  const error = (said as { error?: { message?: string; field?: string | null } } | null)?.error;
  const field = error?.field ? `${error.field}: ` : "";
  throw new Error(error?.message ? field + error.message : `the server answered ${response.status}`);
}

async function post<T>(path: string, body: unknown, signal: AbortSignal): Promise<T> {
  const headers = { "Content-Type": "application/json" };
  return answered<T>(await fetch(path, { method: "POST", headers, body: JSON.stringify(body), signal }));
}

export function look(wish: LookWish, signal: AbortSignal): Promise<WireRecord> {
  return post("v1/look", wish, signal);
}

export function search(query: string, texts: string[], model: string, signal: AbortSignal): Promise<{ hits: Hit[] }> {
  return post("v1/search", { query, texts, model, count: Math.min(10, texts.length) }, signal);
}

export async function models(): Promise<{ models: ModelCard[]; lesson: boolean }> {
  return answered(await fetch("v1/models"));
}

export async function lesson(): Promise<Lesson> {
  return answered<Lesson>(await fetch("v1/lesson"));
}
