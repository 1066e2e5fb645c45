// Where an absolute URL of HTTP leads, as requests say it.

export interface AbsoluteTarget {
  readonly isHttps: boolean;
  /** host[:port]. */
  readonly authority: string;
  /** Path and query; never empty. */
  readonly target: string;
}

/** Only what names its host can be followed; who it is for (`user@`) is for nobody to say. */
const ABSOLUTE = /^(https?):\/\/([^/?#@\s]+)((?:[/?][^#\s]*)?)(?:#.*)?$/i;

/** @returns undefined when the URL leads nowhere. */
export function absoluteTarget(url: string): AbsoluteTarget | undefined {
  const match = ABSOLUTE.exec(url);
  if (match === null) return undefined;
  const [, scheme, authority, rest] = match as unknown as [string, string, string, string];
  return { isHttps: scheme.length === 5, authority, target: rest.startsWith('/') ? rest : `/${rest}` };
}
