export type { AdmissionRules } from './admission.ts';
export { AdminServer, type AdminServerOptions } from './server.ts';
export type {
  AdminTraffic,
  CircuitBreakerView,
  ClustersView,
  ClusterView,
  FamilyView,
  HistogramView,
  HostStatsView,
  HostView,
  ListenersView,
  ListenerView,
  LocalityView,
  NodeView,
  NumericStatView,
  OutlierView,
  RequestEnd,
  ServerCommands,
  ServerState,
  ServerView,
  StatsView,
  TextStatView,
} from './views/index.ts';
