// What a scraper would rather have. Source: RFC 9110 section 12.5.1.

const OPEN_METRICS = 'application/openmetrics-text';

/** @param accept the Accept header. */
export function prefersOpenMetrics(accept: string | undefined): boolean {
  const qualities = new Map<string, number>();
  for (const range of (accept ?? '').toLowerCase().split(',')) {
    const [type = '', ...parameters] = range.split(';').map((part) => part.trim());
    const quality = parameters.find((parameter) => parameter.startsWith('q='))?.slice('q='.length);
    const number = quality === undefined ? 1 : Number(quality);
    qualities.set(type, Math.max(qualities.get(type) ?? 0, number || 0));
  }
  const wanted = qualities.get(OPEN_METRICS) ?? 0;
  return wanted > 0 && wanted >= (qualities.get('text/plain') ?? 0);
}
