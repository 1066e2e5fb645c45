export { DataPlane, type DataPlaneDependencies } from './data-plane.ts';
export type {
  BodyData,
  BodyUse,
  CreateFilter,
  FilterCallbacks,
  FilterContext,
  FilterStatus,
  HeadTest,
  HttpFilter,
  HttpFilterKind,
  HttpFilterRegistry,
} from './http/filter.ts';
export type { LocalReply } from './http/local-reply.ts';
export type { Taps } from './http/taps.ts';
export type { Trailers } from './http/trailers.ts';
export { chooseReadMode } from './network/read-mode.ts';
export type { EditableHead } from './route/header-editor.ts';
export { compileHeaderTest } from './route/header-matcher.ts';
