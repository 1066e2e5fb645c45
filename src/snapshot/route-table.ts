// A route configuration as workers match it: virtual hosts by domain, then routes in order. What depends on the levels
// of the configuration (table, virtual host, route) is settled here, so that a worker finds all of it at the route.

import type { MetadataMatch } from '../base/metadata-match.ts';
import type { ProxyHeaderSettings } from '../base/proxy-header.ts';
import type { Fraction, RuntimeSetting } from '../base/runtime.ts';
import type { StringMatch } from '../base/string-match.ts';
import type { SubsetCriteria } from './balancing.ts';
import type { CidrRange } from './cidr-range.ts';
import type { ConfigSourceSettings } from './config-source.ts';
import type { FormatSegments, ReplyFormat } from './format.ts';
import type { InternalRedirectSettings } from './internal-redirect.ts';
import type { MatchTree } from './matcher.ts';
import type { Metadata } from './metadata.ts';
import type { RouteRateLimits } from './rate-limit.ts';
import type { RetrySettings } from './retry.ts';
import type { RouteTracing } from './tracing.ts';
import type { WholeStats } from './whole-stats.ts';

/**
 * How the path, without its query, is compared. `path-separated-prefix` matches whole segments only; `connect` matches
 * CONNECT requests, which have no path and match nothing else.
 */
export interface PathMatch {
  readonly kind: 'prefix' | 'path' | 'path-separated-prefix' | 'regex' | 'connect';
  readonly value: string;
  /** Without meaning for a regular expression. */
  readonly caseSensitive: boolean;
}

/** The values of a header, several fields joined by ','. Names are in lower case; `:method` and its like are understood. */
export interface HeaderMatch {
  readonly name: string;
  readonly test:
    | StringMatch
    /** A whole number, from `start` up to but not including `end`. */
    | { readonly kind: 'range'; readonly start: number; readonly end: number }
    | { readonly kind: 'present'; readonly isPresent: boolean };
  /** The test must fail. A missing header still matches nothing but a test of presence. */
  readonly isInverted: boolean;
  /** A missing header is tested as if it were there with an empty value. */
  readonly treatMissingAsEmpty: boolean;
}

/** The first value of a query parameter, as it stands in the target: nothing is decoded. */
export interface QueryParameterMatch {
  readonly name: string;
  readonly test: StringMatch | { readonly kind: 'present'; readonly isPresent: boolean };
}

/** The first cookie of a name; a missing one fails the test of its value. */
export interface CookieMatch {
  readonly name: string;
  readonly test: StringMatch;
  /** The test must fail. */
  readonly isInverted: boolean;
}

/** What must be so of the client's certificate; absent where it does not matter. */
export interface ClientCertificateMatch {
  readonly isPresented?: boolean;
  /** It has been held against something. */
  readonly isValidated?: boolean;
}

/** What stands in the filter state under a name; nothing fails the test. */
export interface FilterStateMatch {
  readonly key: string;
  readonly test:
    | StringMatch
    /** It is an IP address in one of them. */
    | { readonly kind: 'ranges'; readonly ranges: readonly CidrRange[] };
}

/** What must hold beside the path; all of it. Lists are absent when they are empty. */
export interface RouteConditions {
  readonly headers: readonly HeaderMatch[];
  readonly queryParameters: readonly QueryParameterMatch[];
  readonly cookies?: readonly CookieMatch[];
  readonly clientCertificate?: ClientCertificateMatch;
  /** Of what filters have said of the request. */
  readonly metadata?: readonly MetadataMatch[];
  /** Of what network filters have said of the connection. */
  readonly filterState?: readonly FilterStateMatch[];
  readonly fraction: RuntimeSetting<Fraction> | null;
}

/** What happens to a header that is to be added and exists already. */
export type HeaderAppendAction = 'append' | 'add-if-absent' | 'overwrite' | 'overwrite-if-present';

export interface HeaderAddition {
  /** Lower case. */
  readonly name: string;
  /** No segments for an empty value. */
  readonly value: FormatSegments;
  readonly action: HeaderAppendAction;
  /** False: a value that turns out empty adds nothing. */
  readonly keepsEmptyValue: boolean;
}

/** Changes that one level of the configuration asks for: first what goes, then what comes. */
export interface HeaderEdits {
  /** Lower case. */
  readonly remove: readonly string[];
  readonly add: readonly HeaderAddition[];
}

/** Every match in the path is replaced. */
export interface RegexSubstitution {
  readonly pattern: string;
  /** In the syntax of RE2: `\1` for the first group, `\0` for the whole match, `\\` for a backslash. */
  readonly substitution: string;
}

export type PathRewrite =
  /** Takes the place of the matched prefix or path. */
  | { readonly kind: 'prefix'; readonly value: string }
  | ({ readonly kind: 'regex' } & RegexSubstitution)
  /** In place of the path up to its query; nothing changes where it comes out empty. */
  | { readonly kind: 'format'; readonly segments: FormatSegments };

export type HostRewrite =
  | { readonly kind: 'literal'; readonly value: string }
  /** The value of a request header, by its lower-case name; nothing changes without it. */
  | { readonly kind: 'header'; readonly name: string }
  /** The host name of the chosen upstream host; nothing changes when it has none. */
  | { readonly kind: 'auto' }
  /** Made of the path without its query. */
  | ({ readonly kind: 'path-regex' } & RegexSubstitution)
  /** Nothing changes where it comes out empty. */
  | { readonly kind: 'format'; readonly segments: FormatSegments };

export interface WeightedCluster {
  /** Empty when the header names it. */
  readonly cluster: string;
  /** Lower-case name of a request header; absent for none. */
  readonly clusterHeader?: string;
  /** What it and the levels around say to HTTP filters, where it says anything itself. */
  readonly filters?: FiltersOfRoute;
  /** Requests that this cluster gets of `totalWeight`, 0 for none. */
  readonly weight: number;
  readonly requestEdits: HeaderEdits | null;
  readonly responseEdits: HeaderEdits | null;
  /** Replaces the Host header, before the route's own rewrite, when not empty. */
  readonly hostRewrite: string;
  /** Takes the place of the route's; those of the route are in it. */
  readonly criteria: SubsetCriteria | null;
}

export interface WeightedClusters {
  readonly entries: readonly WeightedCluster[];
  /** Sum of all weights, 1 or more. */
  readonly totalWeight: number;
  /** In front of `.<cluster>`, the runtime's key of a cluster's weight; empty for none. */
  readonly runtimeKeyPrefix: string;
  /** What decides in place of chance, where a request has it: a number in a header (lower case), or its hash. */
  readonly decidedBy?: { readonly kind: 'header'; readonly name: string } | { readonly kind: 'hash' };
}

export interface RouteUpgrade {
  /** Lower case. */
  readonly type: string;
  readonly isEnabled: boolean;
}

/** One part of what a request is hashed by, for balancers that send equal hashes to the same host. */
export type HashPolicy = HashInput & {
  /** Those behind it count only when there is no hash yet. */
  readonly isTerminal: boolean;
};

export type HashInput =
  /** All values of a request header, by its lower-case name. */
  | { readonly kind: 'header'; readonly name: string; readonly rewrite: RegexSubstitution | null }
  | ({ readonly kind: 'cookie' } & HashCookie)
  /** The client's address without its port. */
  | { readonly kind: 'source-ip' }
  /** First value of a query parameter, as it stands in the target. */
  | { readonly kind: 'query-parameter'; readonly name: string }
  /** What a network filter has put into the filter state of the connection. */
  | { readonly kind: 'filter-state'; readonly key: string };

export interface HashCookie {
  readonly name: string;
  /** Given to clients that bring none, for so long; 0 until they close; null: they get none. */
  readonly ttlSeconds: number | null;
  /** Empty for none. */
  readonly path: string;
  readonly attributes: readonly { readonly name: string; readonly value: string }[];
}

/** gRPC requests set their own time. */
export interface GrpcTimeoutSettings {
  /** Also for requests that name none; 0 for no bound. */
  readonly maxMs: number;
  /** What this proxy answers earlier. */
  readonly offsetMs: number;
}

/** Where copies of requests go; nobody hears of their responses. */
export interface MirrorPolicy {
  /** Empty when the header names it. */
  readonly cluster: string;
  /** Lower-case name of a request header; empty for none. */
  readonly clusterHeader: string;
  /** Of the requests. */
  readonly fraction: RuntimeSetting<Fraction>;
  /** The copy's host ends in `-shadow`. */
  readonly appendsHostSuffix: boolean;
  /** The copy's host; empty for that of the request. */
  readonly hostRewrite: string;
  /** Changes of the copy's head, one after the other. */
  readonly headEdits: readonly HeaderEdits[];
}

export interface ForwardAction {
  readonly kind: 'cluster';
  /** The one cluster; empty when one of the next two chooses. */
  readonly cluster: string;
  readonly weightedClusters: WeightedClusters | null;
  /** Lower-case name of the request header that names the cluster; empty when none does. */
  readonly clusterHeader: string;
  /** What the host's metadata must say, in clusters with subsets; null for nothing. */
  readonly criteria: SubsetCriteria | null;
  /** In their order. */
  readonly hashPolicies: readonly HashPolicy[];
  /** The request counts against the limits of the high priority, over connections of its own. */
  readonly isHighPriority: boolean;
  /** Whole response must arrive within this time once the request is complete; 0 for no limit. */
  readonly timeoutMs: number;
  /** Null: what gRPC requests say of their time means nothing. */
  readonly grpcTimeout: GrpcTimeoutSettings | null;
  /** Give up on a stream without progress after this time, 0 for never; null for the connection manager's setting. */
  readonly idleTimeoutMs: number | null;
  /** The same of a client that does not take the rest of a response that is over. */
  readonly flushTimeoutMs: number | null;
  /** Request and response together must be done within this time; 0 for no limit. */
  readonly maxStreamDurationMs: number;
  /** The connection manager's limit of streams does not count: the route has its own, perhaps none. */
  readonly replacesStreamDuration: boolean;
  /** The route speaks of whole streams: services of gRPC are told how long theirs may last. */
  readonly limitsStreamDuration: boolean;
  /** What gRPC requests say of their time is this time instead; null where it means nothing for it. */
  readonly grpcStreamDuration: GrpcTimeoutSettings | null;
  /** Null: what fails is not tried again, unless the request asks for it. */
  readonly retry: RetrySettings | null;
  /** A try whose time is over goes on beside its retry. */
  readonly hedgesOnPerTryTimeout: boolean;
  /** Requests that go out at once, 1 or more; and the share of requests that one more goes out of, null for none. */
  readonly initialRequests: number;
  readonly additionalRequestShare: Fraction | null;
  /** Tell the upstream of a retry whether the try before it ran out of time. */
  readonly tellsTimeoutRetry: boolean;
  /** How much of a body is kept to be sent once more; null for what the listener may hold. */
  readonly replayLimitBytes: number | null;
  /** The listener's limit counts if it is lower. */
  readonly isReplayLimitCapped: boolean;
  readonly mirrors: readonly MirrorPolicy[];
  /** Null: the client gets every redirect. */
  readonly internalRedirects: InternalRedirectSettings | null;
  readonly pathRewrite: PathRewrite | null;
  readonly hostRewrite: HostRewrite | null;
  /** Tell the upstream, in X-Forwarded-Host, which host a rewrite has replaced. */
  readonly appendForwardedHost: boolean;
  /** By type in lower case: whether this route allows an upgrade, whatever the listener says. */
  readonly upgrades: readonly RouteUpgrade[];
  /** CONNECT ends here: what is in the tunnel goes to the upstream as it is. */
  readonly terminatesConnect: boolean;
  /** So does a POST: its body goes there, and what comes back is the body of its answer. Absent where it does not. */
  readonly terminatesPost?: boolean;
  /** With what the upstream's connection begins then; nothing when absent. */
  readonly connectHeader?: ProxyHeaderSettings;
  /** Answer when the named cluster does not exist. */
  readonly clusterNotFoundStatus: 404 | 500 | 503;
}

export interface DirectResponseAction {
  readonly kind: 'direct-response';
  readonly status: number;
  /** Sent as it is, whatever it holds, unless a format asks for it. */
  readonly body: Uint8Array;
  /** Words what is sent; absent for the body itself. */
  readonly format?: ReplyFormat;
}

export interface RedirectAction {
  readonly kind: 'redirect';
  readonly status: 301 | 302 | 303 | 307 | 308;
  /** Parts of the new location; empty or 0 keeps that of the request. */
  readonly scheme: string;
  readonly host: string;
  readonly port: number;
  /** May bring a query of its own. */
  readonly path: string;
  readonly pathRewrite: Exclude<PathRewrite, { kind: 'format' }> | null;
  readonly stripQuery: boolean;
}

export type RouteAction = ForwardAction | DirectResponseAction | RedirectAction;

/** What one level of a route says to one filter. */
export interface RouteFilterSettings extends WholeStats {
  /** It takes no part. */
  readonly isDisabled: boolean;
  /** As its extension has converted them; absent where the level only turns it off or on. */
  readonly settings?: object;
  /** Full name of what they were made of, for a filter that comes by discovery and may be of another kind; absent for any other. */
  readonly type?: string;
}

/** By the names of filters in their chains: the levels that say something, the most specific one first; never empty. */
export type FiltersOfRoute = ReadonlyMap<string, readonly RouteFilterSettings[]>;

export interface RouteSnapshot {
  readonly name: string;
  /** For formats; absent without any. */
  readonly metadata?: Metadata;
  readonly match: PathMatch;
  /** Null when the path alone decides. */
  readonly conditions: RouteConditions | null;
  readonly action: RouteAction;
  /** Those of route, virtual host and table, in the order in which they apply; levels without edits are left out. */
  readonly requestEdits: readonly HeaderEdits[];
  readonly responseEdits: readonly HeaderEdits[];
  /** Write the number of the attempt into the request, the response. */
  readonly countsAttemptsInRequest: boolean;
  readonly countsAttemptsInResponse: boolean;
  /** Those of route, virtual host and table; the same object for all that say the same. Absent where none says anything. */
  readonly filters?: FiltersOfRoute;
  /** Absent where the route says nothing of its traces. */
  readonly tracing?: RouteTracing;
  /** Absent where neither route nor virtual host describes requests. */
  readonly rateLimits?: RouteRateLimits;
  /** Under which its requests have stats of their own; absent where they have none. */
  readonly statPrefix?: string;
}

/** Requests of a virtual host that have stats of their own. */
export interface VirtualClusterSettings {
  readonly name: string;
  /** All of which hold; never empty. */
  readonly headers: readonly HeaderMatch[];
}

export interface VirtualHostSnapshot {
  readonly name: string;
  /** The first that takes a request counts it, else what all others have in common; absent without any. */
  readonly virtualClusters?: readonly VirtualClusterSettings[];
  /** For formats; absent without any. */
  readonly metadata?: Metadata;
  /** Exact names, `*.suffix`, `prefix.*` or `*`, in lower case, each with an optional port. */
  readonly domains: readonly string[];
  /** Whose requests over plain HTTP are sent to HTTPS, before any route: those from outside, or all. Absent: nobody's. */
  readonly requiresTls?: 'external' | 'all';
  readonly routes: readonly RouteSnapshot[];
  /** Chooses which of the routes are tried, by their places; absent where all are. */
  readonly matcher?: MatchTree<readonly number[]>;
}

export interface RouteTableSnapshot {
  readonly name: string;
  readonly virtualHosts: readonly VirtualHostSnapshot[];
  /** Domains are compared with the authority without its port. */
  readonly ignoresPort: boolean;
  /** Lower-case name of the header that stands for the authority in the choice of a virtual host; absent for the authority. */
  readonly hostHeader?: string;
  /** Routes are chosen by the path up to its first ';'. */
  readonly ignoresPathParameters?: boolean;
  /** Request headers, in lower case, that only internal requests may bring. */
  readonly internalOnlyHeaders: readonly string[];
  /** Where further virtual hosts come from, also one by one when requests want them; absent where these are all. */
  readonly hostDiscovery?: ConfigSourceSettings;
}
