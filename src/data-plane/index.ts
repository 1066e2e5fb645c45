export { DataPlane, type DataPlaneDependencies } from './data-plane.ts';
export type {
  CreateFilter,
  FilterCallbacks,
  FilterContext,
  FilterStatus,
  HeadTest,
  HttpFilter,
  HttpFilterKind,
  HttpFilterRegistry,
  Trailers,
} from './http/filter.ts';
export type { LocalReply } from './http/local-reply.ts';
export type { EditableHead } from './route/header-editor.ts';
