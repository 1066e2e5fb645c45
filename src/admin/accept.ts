// Which of the two text formats a scraper gets. Source: RFC 9110 section 12.5.1.

const OPEN_METRICS = 'application/openmetrics-text';
/** What takes the text format 0.0.4, too. A wildcard for everything does not count: whoever names OpenMetrics alone wants to see that. */
const TEXT_RANGES = ['text/plain', 'text/*'];

/** How much a scraper likes each format, from 0 (not at all) to 1. */
export interface FormatQualities {
  readonly openMetrics: number;
  readonly text: number;
}

/** @param accept the Accept header. */
export function formatQualities(accept: string | undefined): FormatQualities {
  const qualities = new Map<string, number>();
  for (const range of (accept ?? '').toLowerCase().split(',')) {
    const [type = '', ...parameters] = range.split(';').map((part) => part.trim());
    const quality = parameters.find((parameter) => parameter.startsWith('q='))?.slice('q='.length);
    const number = quality === undefined ? 1 : Number(quality);
    qualities.set(type, Math.max(qualities.get(type) ?? 0, number || 0));
  }
  return {
    openMetrics: qualities.get(OPEN_METRICS) ?? 0,
    text: Math.max(...TEXT_RANGES.map((range) => qualities.get(range) ?? 0)),
  };
}
