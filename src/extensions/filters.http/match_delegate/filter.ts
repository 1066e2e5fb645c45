// A filter that a decision tree may pass over: for requests that the tree leads to it for, the filter is as if it were not there. It is
// asked when the request comes to the filter, by what the filters before have made of it. Worker thread; step 3 of the request flow.

import type {
  BodyData,
  EditableHead,
  FilterCallbacks,
  FilterContext,
  FilterStatus,
  HttpFilter,
  HttpFilterKind,
  HttpFilterRegistry,
  Trailers,
} from '../../../data-plane/index.ts';
import type { RequestHead } from '../../../wasm/http1.ts';
import type { MatchDelegateSettings, SkipTree } from './settings.ts';

type SkipsRequest = (head: RequestHead, callbacks: FilterCallbacks) => true | undefined;

/** Has the methods that the other has, which decide how its bodies travel. */
function delegated(filter: HttpFilter, skips: SkipsRequest, callbacks: FilterCallbacks): HttpFilter {
  let isSkipped = false;
  const { decodeData, decodeTrailers, encodeHeaders, encodeData, encodeTrailers, localReplyBody } = filter;
  const seesRequestBody = decodeData !== undefined || decodeTrailers !== undefined;
  const seesResponseBody = encodeData !== undefined || encodeTrailers !== undefined;
  return {
    decodeHeaders(head: RequestHead, isEnd: boolean): FilterStatus {
      const [ofRoute] = callbacks.routeSettings as readonly SkipsRequest[];
      isSkipped = (ofRoute ?? skips)(head, callbacks) === true;
      if (!isSkipped) return filter.decodeHeaders?.(head, isEnd) ?? 'continue';
      if (seesRequestBody && !isEnd) callbacks.leaveRequest();
      return 'continue';
    },
    ...(decodeData && {
      decodeData: (data: BodyData): FilterStatus => (isSkipped ? 'continue' : filter.decodeData!(data)),
    }),
    ...(decodeTrailers && {
      decodeTrailers: (trailers: Trailers): FilterStatus => (isSkipped ? 'continue' : filter.decodeTrailers!(trailers)),
    }),
    ...((encodeHeaders || seesResponseBody) && {
      encodeHeaders(head: EditableHead, status: number, isEnd: boolean): FilterStatus {
        if (!isSkipped) return filter.encodeHeaders?.(head, status, isEnd) ?? 'continue';
        if (seesResponseBody && !isEnd && !callbacks.isLocalReply) callbacks.leaveResponse();
        return 'continue';
      },
    }),
    ...(encodeData && {
      encodeData: (data: BodyData): FilterStatus => (isSkipped ? 'continue' : filter.encodeData!(data)),
    }),
    ...(encodeTrailers && {
      encodeTrailers: (trailers: Trailers): FilterStatus => (isSkipped ? 'continue' : filter.encodeTrailers!(trailers)),
    }),
    ...(localReplyBody && {
      localReplyBody(bytes: Buffer): void {
        if (!isSkipped) filter.localReplyBody!(bytes);
      },
    }),
    onRequestRoom: () => filter.onRequestRoom?.(),
    onResponseRoom: () => filter.onResponseRoom?.(),
    onDestroy: () => filter.onDestroy?.(),
  };
}

/** @param kinds of this build, among which the other filter is. */
export function matchDelegate(kinds: () => HttpFilterRegistry): HttpFilterKind {
  const kindOf = (settings: unknown): HttpFilterKind => kinds()[filterOf(settings).name]!;
  return {
    // What those may say at most; each says less.
    requestBody: 'none',
    encodes: false,
    responseBody: 'none',
    usesOf(settings) {
      const kind = kindOf(settings);
      const uses = { ...kind, ...kind.usesOf?.(filterOf(settings).settings) };
      const { requestBody, encodes, responseBody, remakesRequests = false } = uses;
      return { requestBody, encodes, responseBody, remakesRequests };
    },
    isAwake: (settings, context, head) =>
      kindOf(settings).isAwake?.(filterOf(settings).settings, context, head) ?? true,
    compileForRoute: (tree, context) => compileTree(tree as SkipTree, context),
    compile(settings, context) {
      const create = kindOf(settings).compile(filterOf(settings).settings, context);
      const skips = compileTree((settings as MatchDelegateSettings).tree, context);
      return (callbacks) => delegated(create(callbacks.forInner()), skips, callbacks);
    },
  };
}

function filterOf(settings: unknown): MatchDelegateSettings['filter'] {
  return (settings as MatchDelegateSettings).filter;
}

function compileTree(tree: SkipTree, context: FilterContext): SkipsRequest {
  return context.compileTree(tree, () => true as const);
}
