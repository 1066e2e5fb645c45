// Redirects that the proxy follows itself, in place of its client.

/** What must hold of the route that a redirect leads to. */
export type RedirectPredicate =
  /** It is one of these, by name. */
  | { readonly kind: 'allowed-routes'; readonly names: readonly string[] }
  /** No redirect from the same route has led to it before. */
  | { readonly kind: 'previous-routes' }
  /** No redirect leads from http to https. */
  | { readonly kind: 'safe-cross-scheme' };

export interface InternalRedirectSettings {
  /** Of one request. */
  readonly maxRedirects: number;
  /** Responses of these are followed. */
  readonly statuses: readonly number[];
  /** All of them must hold. */
  readonly predicates: readonly RedirectPredicate[];
  /** Between http and https. */
  readonly allowsCrossScheme: boolean;
  /** Response headers by their lower-case names that the next request has in place of its own. */
  readonly headersToCopy: readonly string[];
}
