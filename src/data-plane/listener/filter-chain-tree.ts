// Chooses filter chains by a decision tree, in place of their criteria: the tree leads to a name. Step 1 of the request flow; built
// once per snapshot.

import type { FilterChainChoice, MatchTree } from '../../snapshot/index.ts';
import type { IngressFacts } from '../format/facts.ts';
import { TextFormatter } from '../format/text-formatter.ts';
import { CONNECTION_INPUTS } from '../matching/connection-inputs.ts';
import { compileMatchTree } from '../matching/match-tree.ts';
import { connectionFacts, filterFacts } from '../network/connection-facts.ts';
import type { DownstreamConnection } from '../network/downstream-connection.ts';
import type { WorkerContext } from '../worker-context.ts';

/** @returns the name of a chain, which may be that of none; undefined where the tree leads nowhere. */
export type FindChainName = (connection: DownstreamConnection) => string | undefined;

/** @param ingress of connections that have no chain. */
export function compileChainTree(
  context: WorkerContext,
  tree: MatchTree<FilterChainChoice>,
  ingress: IngressFacts,
): FindChainName {
  const tools = { runtime: context.runtime, kernel: context.lbKernel };
  const nameOf = (choice: FilterChainChoice) => chosenName(context, choice, ingress);
  const find = compileMatchTree(tree, CONNECTION_INPUTS, tools, nameOf);
  return (connection) => find(connectionFacts(context, connection))?.(connection);
}

function chosenName(
  context: WorkerContext,
  choice: FilterChainChoice,
  ingress: IngressFacts,
): (connection: DownstreamConnection) => string {
  if (choice.kind === 'name') return () => choice.name;
  const formatter = new TextFormatter(choice.segments, { missing: choice.omitsEmptyValues ? '' : '-' });
  // Formats make byte text.
  return (connection) => Buffer.from(formatter.render(filterFacts(context, connection, ingress)), 'latin1').toString();
}
