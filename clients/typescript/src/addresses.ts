// Where the servers are, as a URL. No message repeats a part of one, since it may hold a password.
import { PinpriqError } from "./errors.js";

/** The port of the RESP door, plain and encrypted. */
const PORT = 7251;
const PORT_ENCRYPTED = 7261;
const PORT_MAX = 65_535;

const SCHEMES: Record<string, { isEncrypted: boolean }> = {
  pinpriq: { isEncrypted: false },
  redis: { isEncrypted: false },
  pinpriqs: { isEncrypted: true },
  rediss: { isEncrypted: true },
};

/** The host, without brackets, and the port of one server. */
export interface Address {
  readonly host: string;
  readonly port: number;
}

/** The servers of one URL, and who signs in. */
export interface Place {
  readonly addresses: readonly [Address, ...Address[]];
  readonly isEncrypted: boolean;
  readonly user: string | undefined;
  readonly password: string | undefined;
}

/**
 * Reads `pinpriq://user:password@host:port,host:port`, of which everything after the scheme can be
 * left out. Throws if it makes no sense.
 */
export function placeOf(url: string): Place {
  const [scheme, given, ...more] = url.split("://");
  if (given === undefined || more.length > 0) {
    throw wrong("it must be pinpriq://HOST:PORT, or pinpriqs:// for TLS");
  }
  const kind = SCHEMES[scheme ?? ""];
  if (kind === undefined) throw wrong("its scheme is not pinpriq, pinpriqs, redis or rediss");
  const rest = given.endsWith("/") ? given.slice(0, -1) : given;
  const at = rest.lastIndexOf("@");
  const hosts = rest.slice(at + 1);
  if (/[/?#]/.test(hosts)) {
    throw wrong("there is something after the host and the port, and pinpriq has no databases");
  }
  if (hosts.includes(",") && hosts.split(",").includes("")) {
    throw wrong("there is nothing between two of its commas");
  }
  const usual = kind.isEncrypted ? PORT_ENCRYPTED : PORT;
  const [first, ...others] = hosts.split(",");
  const addresses: [Address, ...Address[]] = [
    addressOf(first ?? "", usual),
    ...others.map((host) => addressOf(host, usual)),
  ];
  const credentials = credentialsOf(rest.slice(0, Math.max(at, 0)));
  return { addresses, isEncrypted: kind.isEncrypted, ...credentials };
}

function credentialsOf(text: string): { user: string | undefined; password: string | undefined } {
  const colon = text.indexOf(":");
  const [user, password] =
    colon < 0 ? [text, ""] : [text.slice(0, colon), text.slice(colon + 1)];
  return { user: decoded(user), password: decoded(password) };
}

function addressOf(text: string, usualPort: number): Address {
  const bracketed = /^\[([^\]]*)\](?::(.*))?$/.exec(text);
  const plain = /^([^:[\]]*)(?::([^:]*))?$/.exec(text);
  const [, host, port] = bracketed ?? plain ?? [];
  if (host === undefined) throw wrong("an address of IPv6 needs brackets");
  const number = port === undefined ? usualPort : Number(port);
  if (port === "" || !Number.isInteger(number) || number < 1 || number > PORT_MAX) {
    throw wrong("a port is no number from 1 to 65535");
  }
  return { host: host === "" ? "127.0.0.1" : host, port: number };
}

function decoded(text: string): string | undefined {
  if (text === "") return undefined;
  try {
    return decodeURIComponent(text);
  } catch {
    throw wrong("its user or its password is not percent-encoded UTF-8");
  }
}

function wrong(what: string): PinpriqError {
  return new PinpriqError(`the address of the server cannot be used: ${what}`);
}
