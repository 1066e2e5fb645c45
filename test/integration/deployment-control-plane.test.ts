// deploy/kubernetes/marin3r.yaml: a bootstrap that asks a control plane, and the resources that this one is to tell. No cluster is at
// hand here: a management server of the tests tells them to the real program, over TLS with a client's certificate.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, it } from 'node:test';
import { ServerCredentials } from '@grpc/grpc-js';
import { loadAll, load as readYaml } from 'js-yaml';
import { PACKAGE_ROOT } from '../../src/base/package-root.ts';
import type { JsonObject } from '../support/bootstrap.ts';
import { CertificateFolder } from '../support/certificates.ts';
import { ControlPlane } from '../support/control-plane.ts';
import { answerOf, CLUSTER, LISTENER, ROUTES, upstreamSaying } from '../support/discovered-proxy.ts';
import { startWeir } from '../support/weir-process.ts';
import { unusedPort } from '../support/wire.ts';

interface Resource {
  readonly name: string;
  readonly value: string;
}

interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly data: { readonly 'weir.yaml': string };
  readonly spec: {
    readonly nodeID: string;
    readonly serialization: string;
    readonly envoyAPI: string;
    readonly envoyResources: Readonly<Record<string, readonly Resource[]>>;
    readonly selector: { readonly matchLabels?: object };
    readonly ports: readonly { readonly targetPort: string }[];
    readonly template: {
      readonly metadata: { readonly labels: object };
      readonly spec: {
        readonly containers: readonly [
          {
            readonly args: readonly string[];
            readonly ports: readonly { readonly name: string; readonly containerPort: number }[];
            readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string }[];
          },
        ];
        readonly volumes: readonly { readonly name: string }[];
      };
    };
  };
}

const file = path.join(PACKAGE_ROOT, 'deploy', 'kubernetes', 'marin3r.yaml');
const manifests = loadAll(readFileSync(file, 'utf8')) as Manifest[];
const manifest = (kind: string): Manifest => manifests.find((one) => one.kind === kind)!;
const { spec: config } = manifest('EnvoyConfig');
const bootstrapText = manifest('ConfigMap').data['weir.yaml'];

describe('the manifest for a control plane in Kubernetes', () => {
  it('has resources in the form that the operator takes them in, by the names that they have themselves', () => {
    assert.equal(manifest('EnvoyConfig').apiVersion, 'marin3r.3scale.net/v1alpha1');
    assert.deepEqual([config.serialization, config.envoyAPI], ['yaml', 'v3']);
    const allowed = new Set(['clusters', 'endpoints', 'listeners', 'routes', 'runtimes', 'secrets']);
    for (const [kind, resources] of Object.entries(config.envoyResources)) {
      assert.ok(allowed.has(kind), kind);
      for (const { name, value, ...others } of resources) {
        assert.deepEqual(others, {});
        assert.equal((readYaml(value) as Resource).name, name);
      }
    }
    const { node } = readYaml(bootstrapText) as { readonly node: { readonly id: string } };
    assert.equal(node.id, config.nodeID);
    assert.match(bootstrapText, new RegExp(`address: marin3r-${manifest('DiscoveryService').metadata.name}, `));
  });

  it('selects its own pods, and mounts what its configuration names', () => {
    const { metadata, spec } = manifest('Deployment').spec.template;
    assert.deepEqual(manifest('Deployment').spec.selector.matchLabels, metadata.labels);
    assert.deepEqual(manifest('Service').spec.selector, metadata.labels);
    const [{ args, ports, volumeMounts }] = spec.containers;
    const mounts = volumeMounts.map(({ mountPath }) => mountPath);
    const files = [args[1]!, ...[...bootstrapText.matchAll(/filename: (\S+) /g)].map(([, name]) => name!)];
    for (const name of files) assert.ok(mounts.includes(path.dirname(name)), name);
    assert.deepEqual(
      volumeMounts.map(({ name }) => name),
      spec.volumes.map(({ name }) => name),
    );
    const named = new Set(ports.map(({ name }) => name));
    for (const { targetPort } of manifest('Service').spec.ports) assert.ok(named.has(targetPort));
  });

  it('serves what the control plane tells, and proves who it is', async (t) => {
    using folder = new CertificateFolder();
    const ca = await folder.make('ca', { isAuthority: true });
    const own = await folder.make('server', { issuer: ca });
    const client = await folder.make('client', { issuer: ca });
    const pair = { private_key: Buffer.from(own.key), cert_chain: Buffer.from(own.certificate) };
    const plane = await ControlPlane.start(
      t,
      0,
      ServerCredentials.createSsl(Buffer.from(ca.certificate), [pair], true),
    );
    const port = await upstreamSaying(t, 'app');
    const local = (text: string): string =>
      text
        .replaceAll('0.0.0.0', '127.0.0.1')
        .replaceAll(/port_value: (?:8080|9902)/g, 'port_value: 0')
        .replace(/address: app, port_value: 0/, `address: localhost, port_value: ${port}`);
    const told = (kind: string): readonly JsonObject[] =>
      config.envoyResources[kind]!.map(({ value }) => readYaml(local(value)) as JsonObject);
    plane.set(CLUSTER, '1', told('clusters'));
    plane.set(ROUTES, '1', told('routes'));
    plane.set(LISTENER, '1', told('listeners'));
    const configYaml = local(bootstrapText)
      .replaceAll('9901', String(await unusedPort()))
      .replace('address: marin3r-discoveryservice, port_value: 18000', `address: localhost, port_value: ${plane.port}`)
      .replace('/etc/weir/tls/tls.crt', client.certificatePath)
      .replace('/etc/weir/tls/tls.key', client.keyPath);
    await using weir = await startWeir({ configYaml });
    assert.equal(await answerOf(weir, 'http'), '200 app');
    for (const type of [CLUSTER, ROUTES, LISTENER]) assert.equal((await plane.answered(type, '1')).error_detail, null);
    assert.equal(plane.requests[0]!.node!.id, config.nodeID);
    const { port: status } = (await weir.listeners()).get('status')!;
    assert.equal((await fetch(`http://127.0.0.1:${status}/ready`)).status, 200);
    assert.deepEqual(plane.violations, []);
  });
});
