// What the admin interface reads of the running server, and what it may command: a file for each subject. The control plane
// implements these; the endpoints know nothing else of it. Main thread. All values are those of the moment of the call.

export type { CertificatesView, CertificateView } from './certificates.ts';
export type {
  CheckView,
  CircuitBreakerView,
  ClustersView,
  ClusterView,
  EjectionView,
  HostStatsView,
  HostView,
  OutlierView,
} from './clusters.ts';
export type { DrainOrder, ProfilerKind, ProfilerOutcome, ServerCommands } from './commands.ts';
export type {
  AssignmentView,
  ConfigView,
  EndpointsView,
  EndpointView,
  ResourcesView,
  ResourceView,
  RoutesView,
  ScopesView,
  SecretView,
} from './config.ts';
export type { EventFeedView, EventStreamView } from './event-stream.ts';
export type { HistoryView, ReadPoints } from './history.ts';
export type { InitView, UnreadyView } from './init.ts';
export type { ListenersView, ListenerView } from './listeners.ts';
export type { LocalityView } from './locality.ts';
export type { LookupsView } from './lookups.ts';
export type {
  BreakerUseView,
  BusyClusterView,
  ClusterUseView,
  OverviewView,
  RecentTimesView,
  SourceView,
} from './overview.ts';
export type { ProcessView, TroubleView } from './process.ts';
export type { RuntimeEntryView, RuntimeView } from './runtime.ts';
export type { NodeView, ServerState, ServerView } from './server.ts';
export type {
  FamilyView,
  HistogramBinView,
  HistogramSpanName,
  HistogramView,
  NumericStatView,
  StatsView,
  TagView,
  TextStatView,
} from './stats.ts';
export type { TapFeedView, TapView } from './tap.ts';
export type { AdminTraffic, ConnectionEnd, RequestEnd } from './traffic.ts';
