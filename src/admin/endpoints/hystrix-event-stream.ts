// GET /hystrix_event_stream: events for a dashboard of circuit breakers, a batch with each flush of the statistics.

import { endpoint } from '../endpoint.ts';
import { textResponse } from '../response.ts';

/** Dashboards are pages of other sites; what they see here changes nothing. */
const FOR_DASHBOARDS = {
  'cache-control': 'no-cache',
  'access-control-allow-origin': '*',
  'access-control-allow-headers': 'Accept, Cache-Control, X-Requested-With, Last-Event-ID',
};

export const HYSTRIX_EVENT_STREAM = endpoint({
  path: '/hystrix_event_stream',
  help: 'Statistics of clusters as a stream of events; only with the stats sink envoy.stat_sinks.hystrix',
  isServed: ({ eventStream }) => eventStream !== undefined,
  handle({ eventStream }) {
    const feed = eventStream!.listen();
    if (feed === undefined) return textResponse('too many clients read this stream\n', 503);
    return {
      status: 200,
      contentType: 'text/event-stream',
      headers: FOR_DASHBOARDS,
      body: piecesOf(feed),
      isOpenEnded: true,
      afterSent: () => feed.close(),
    };
  },
});

async function* piecesOf(feed: AsyncIterable<readonly string[]>): AsyncGenerator<string> {
  for await (const pieces of feed) yield* pieces;
}
