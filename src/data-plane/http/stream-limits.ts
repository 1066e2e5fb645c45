// The limits that a connection manager, a route, or a request for itself, sets to a stream: what the client is told when one has passed, and
// where it is counted.

import { CLUSTER_STATS } from '../../stats/index.ts';
import * as replies from './local-reply.ts';

const {
  upstream_rq_max_duration_reached,
  upstream_rq_per_try_idle_timeout,
  upstream_rq_per_try_timeout,
  upstream_rq_timeout,
} = CLUSTER_STATS.index;

interface LimitReplies {
  readonly reply: replies.LocalReply;
  /** The same while the client has not sent all of its request. */
  readonly earlyReply: replies.LocalReply;
}

/** The connection manager's or the route's, whatever becomes of the request. */
interface DownstreamLimit extends LimitReplies {
  readonly stat: null;
}

export interface UpstreamLimit extends LimitReplies {
  /** Of CLUSTER_STATS. */
  readonly stat: number;
  /** The cluster counts the reply like a response. */
  readonly isCharged: boolean;
  /** The request has used up its time. */
  readonly endsBudget: boolean;
}

export type StreamLimit = DownstreamLimit | UpstreamLimit;

export const STREAM_LIMIT: StreamLimit = {
  reply: replies.DOWNSTREAM_DURATION,
  earlyReply: replies.DOWNSTREAM_DURATION_REQUEST,
  stat: null,
};
export const ROUTE_LIMIT: UpstreamLimit = {
  reply: replies.ROUTE_TIMEOUT,
  earlyReply: replies.ROUTE_TIMEOUT,
  stat: upstream_rq_timeout,
  isCharged: true,
  endsBudget: true,
};
export const PER_TRY_LIMIT: UpstreamLimit = {
  reply: replies.PER_TRY_TIMEOUT,
  earlyReply: replies.PER_TRY_TIMEOUT,
  stat: upstream_rq_per_try_timeout,
  isCharged: true,
  endsBudget: true,
};
export const PER_TRY_IDLE_LIMIT: UpstreamLimit = {
  reply: replies.PER_TRY_IDLE_TIMEOUT,
  earlyReply: replies.PER_TRY_IDLE_TIMEOUT,
  stat: upstream_rq_per_try_idle_timeout,
  isCharged: true,
  endsBudget: true,
};
/** Of a try, by its cluster, or of the exchange with upstreams, by the request's own header. */
export const DURATION_LIMIT: UpstreamLimit = {
  reply: replies.MAX_STREAM_DURATION,
  earlyReply: replies.MAX_STREAM_DURATION_REQUEST,
  stat: upstream_rq_max_duration_reached,
  isCharged: false,
  endsBudget: false,
};
