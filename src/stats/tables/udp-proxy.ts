// Of listeners for datagrams: udp.<stat prefix>.*, and what is beside it of their cluster and of the listener.

import { statTable } from '../stat-table.ts';

export const UDP_PROXY_STATS = statTable({
  downstream_sess_total: 'counter',
  downstream_sess_active: 'gauge',
  downstream_sess_no_route: 'counter',
  downstream_sess_rx_bytes: 'counter',
  downstream_sess_rx_datagrams: 'counter',
  downstream_sess_rx_errors: 'counter',
  downstream_sess_tx_bytes: 'counter',
  downstream_sess_tx_datagrams: 'counter',
  downstream_sess_tx_errors: 'counter',
  idle_timeout: 'counter',
});

/** cluster.<name>.udp.* */
export const UDP_CLUSTER_STATS = statTable({
  sess_rx_datagrams: 'counter',
  sess_rx_datagrams_dropped: 'counter',
  sess_rx_errors: 'counter',
  sess_tx_datagrams: 'counter',
  sess_tx_errors: 'counter',
});

/** listener.<address>.udp.* */
export const UDP_LISTENER_STATS = statTable({
  downstream_rx_datagram_dropped: 'counter',
});
