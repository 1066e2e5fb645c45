// What the dynamic_forward_proxy filter and its configuration share.

export interface ForwardProxySettings {
  /** What filters have said of a request, or of its connection, names its host. */
  readonly readsState: boolean;
}

/** What a level of a route says. */
export type HostRewrite = { readonly literal: string } | { readonly header: string };
