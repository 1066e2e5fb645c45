// GET /hystrix_event_stream: events for a dashboard of circuit breakers.

import { endpoint } from '../endpoint.ts';

export const HYSTRIX_EVENT_STREAM = endpoint({
  path: '/hystrix_event_stream',
  help: 'Statistics of clusters as a stream of events',
});
