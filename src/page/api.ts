// How the page asks its server: by paths relative to its own, so that it works below any other.

/** Longer than any answer takes that is worth waiting for. */
const PATIENCE_MS = 10_000;

export async function getJson<Answer>(path: string): Promise<Answer> {
  const response = await fetch(path, { signal: AbortSignal.timeout(PATIENCE_MS), cache: 'no-store' });
  if (!response.ok) throw new Error(`${response.status} ${(await response.text()).trim()}`);
  return (await response.json()) as Answer;
}

/** @returns the text of the answer. @throws Error with what the server says against it. */
export async function post(path: string): Promise<string> {
  const response = await fetch(path, { method: 'POST', signal: AbortSignal.timeout(PATIENCE_MS) });
  const text = (await response.text()).trim();
  if (!response.ok) throw new Error(text.split('\n')[0] || String(response.status));
  return text;
}
