// The server's state as the admin interface names it.
//
//   PRE_INITIALIZING ──start──▶ INITIALIZING ──clusters warm, listeners open──▶ LIVE ──stop──▶ DRAINING
//                                                                                ▲              ▲
//                                                                                └─ /healthcheck/fail and /ok
//
// The number is the value of the gauge server.state.

export const SERVER_STATES = { LIVE: 0, DRAINING: 1, PRE_INITIALIZING: 2, INITIALIZING: 3 } as const;

export type ServerState = keyof typeof SERVER_STATES;
