// What the dynamic_forward_proxy filter and its configuration share.

/** What a level of a route says. */
export type HostRewrite = { readonly literal: string } | { readonly header: string };
