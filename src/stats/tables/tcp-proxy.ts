// tcp.<stat prefix>.*: one TCP proxy filter, and of one with on_demand how it has fared with clusters that were not known.

import { statTable } from '../stat-table.ts';

export const TCP_PROXY_STATS = statTable({
  downstream_cx_total: 'counter',
  downstream_cx_no_route: 'counter',
  downstream_cx_tx_bytes_total: 'counter',
  downstream_cx_rx_bytes_total: 'counter',
  downstream_cx_tx_bytes_buffered: 'gauge',
  downstream_cx_rx_bytes_buffered: 'gauge',
  downstream_flow_control_paused_reading_total: 'counter',
  downstream_flow_control_resumed_reading_total: 'counter',
  early_data_received_count_total: 'counter',
  idle_timeout: 'counter',
  max_downstream_connection_duration: 'counter',
  upstream_flush_total: 'counter',
  upstream_flush_active: 'gauge',
});

export const TCP_ON_DEMAND_STATS = statTable({
  on_demand_cluster_attempt: 'counter',
  on_demand_cluster_missing: 'counter',
  on_demand_cluster_success: 'counter',
  on_demand_cluster_timeout: 'counter',
});
