// POST /tap: shows requests and responses as they pass. What is recorded, and in which form it comes, stands in the body, a
// TapRequest as YAML or JSON.

import { readTapOrder, type TapOrder } from '../../config/index.ts';
import { renderTrace } from '../../control-plane/index.ts';
import { endpoint } from '../endpoint.ts';
import { type AdminResponse, JSON_TYPE, textResponse } from '../response.ts';
import type { TapFeedView } from '../views/index.ts';

const BINARY = 'application/octet-stream';
/** Traces that come together end with the one that goes beyond it. */
const MOST_COLLECTED_BYTES = 64 * 1024 * 1024;

const REFUSALS = {
  attached: (_configId: string) => 'An attached /tap admin stream already exists. Detach it.',
  'unknown-config-id': (configId: string) =>
    `Unknown config id '${configId}'. No extension has registered with this id.`,
};

export const TAP = endpoint({
  path: '/tap',
  help: 'Show requests that match, as they pass; the body of the request says which',
  mutates: true,
  isServed: ({ tap }) => tap?.isConfigured ?? false,
  handle({ tap }, _parameters, { body }) {
    if (body === undefined || body.length === 0) return textResponse('/tap requires a JSON/YAML body', 400);
    const read = readTapOrder(body.toString());
    if ('refusal' in read) return textResponse(read.refusal, 400);
    const { settings, collects } = read.order;
    const feed = tap!.begin({ ...settings, timeoutMs: collects?.timeoutMs ?? 0 });
    return typeof feed === 'string'
      ? textResponse(REFUSALS[feed](settings.configId), 400)
      : tapResponse(feed, read.order);
  },
});

function tapResponse(feed: TapFeedView, { format, collects }: TapOrder): AdminResponse {
  return {
    status: 200,
    contentType: format === 'binary-delimited' ? BINARY : JSON_TYPE,
    body: collects === null ? each(feed, format) : together(feed, format, collects.mostTraces),
    isOpenEnded: true,
    afterSent: () => feed.close(),
  };
}

async function* each(feed: TapFeedView, format: TapOrder['format']): AsyncGenerator<string | Uint8Array> {
  for await (const trace of feed) yield renderTrace(trace, format);
}

async function* together(
  feed: TapFeedView,
  format: TapOrder['format'],
  mostTraces: number,
): AsyncGenerator<string | Uint8Array> {
  const traces: (string | Uint8Array)[] = [];
  let bytes = 0;
  for await (const trace of feed) {
    const rendered = renderTrace(trace, format);
    traces.push(rendered);
    bytes += rendered.length;
    if (traces.length >= mostTraces || bytes >= MOST_COLLECTED_BYTES) break;
  }
  yield* traces;
}
