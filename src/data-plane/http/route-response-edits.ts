// What a route asks of a response, whether it comes from an upstream or from the proxy itself.

import type { ClusterTarget } from '../route/forward-plan.ts';
import type { EditableHead, FactsSource } from '../route/header-editor.ts';
import type { Route } from '../route/route.ts';
import type { ProxyHeaders } from './proxy-headers.ts';

/** The part of a stream that edits depend on. */
export interface RoutedStream extends FactsSource {
  /** Null before a route has been found. */
  readonly route: Route | null;
  readonly target: ClusterTarget | null;
  /** For a client whose requests are to stay on one host; null for none. */
  readonly setCookies: readonly string[] | null;
}

export function hasResponseEdits({ route, target, setCookies }: RoutedStream): boolean {
  if (route === null) return false;
  return (
    setCookies !== null ||
    route.responseEditor !== null ||
    route.countsAttemptsInResponse ||
    (target !== null && target.responseEditor !== null)
  );
}

/**
 * @param attempts times that the request has been sent; 0 when it never was.
 * @param isLocal the response is a reply of the proxy's own.
 */
export function editResponse(
  head: EditableHead,
  stream: RoutedStream,
  names: ProxyHeaders,
  attempts: number,
  isLocal: boolean,
): void {
  const { route, target, setCookies } = stream;
  // A reply of the proxy's own does not bind a client to a host.
  if (setCookies !== null && !isLocal) for (const text of setCookies) head.append('set-cookie', text);
  target?.responseEditor?.apply(head, stream);
  route?.responseEditor?.apply(head, stream, (target?.responseEditor ?? null) !== null);
  if (route?.countsAttemptsInResponse && attempts > 0) {
    head.removeField(names.attemptCount);
    head.append(names.attemptCount, String(attempts));
  }
}
