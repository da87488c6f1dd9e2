// Package netrule tells which addresses the servers may call on behalf of users and
// shops: an address that a user or a shop has typed must not lead into the network
// of the servers.
package netrule

import (
	"errors"
	"net/netip"
)

// ErrPrivate is the refusal to connect to an address that is not public.
var ErrPrivate = errors.New("the address is not public")

// notPublic are networks that [netip.Addr] calls global unicast although no server
// of the internet has an address in them.
var notPublic = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),       // this network, RFC 1122
	netip.MustParsePrefix("100.64.0.0/10"),   // carriers' NAT, RFC 6598; also metadata services
	netip.MustParsePrefix("192.0.0.0/24"),    // protocol assignments, RFC 6890
	netip.MustParsePrefix("192.0.2.0/24"),    // documentation, RFC 5737
	netip.MustParsePrefix("198.18.0.0/15"),   // benchmarks, RFC 2544
	netip.MustParsePrefix("198.51.100.0/24"), // documentation
	netip.MustParsePrefix("203.0.113.0/24"),  // documentation
	netip.MustParsePrefix("240.0.0.0/4"),     // reserved, with the broadcast address
	netip.MustParsePrefix("2001::/23"),       // protocol assignments, with Teredo: any IPv4 address
	netip.MustParsePrefix("2001:db8::/32"),   // documentation
	netip.MustParsePrefix("2002::/16"),       // 6to4: any IPv4 address
	netip.MustParsePrefix("3fff::/20"),       // documentation, RFC 9637
}

// unicast is the part of IPv6 that holds the servers of the internet. Outside of it are
// the forms that lead to any IPv4 address: compatible (::a.b.c.d), translated
// (::ffff:0:a.b.c.d) and NAT64 (64:ff9b::a.b.c.d).
var unicast = netip.MustParsePrefix("2000::/3")

// Public reports whether ip is an address of the internet: not loopback, private,
// link-local (which metadata services have) or multicast, and no other form of such
// an address.
func Public(ip netip.Addr) bool {
	ip = ip.Unmap().WithZone("")
	if !ip.IsGlobalUnicast() || ip.IsPrivate() || ip.Is6() && !unicast.Contains(ip) {
		return false
	}
	for _, n := range notPublic {
		if n.Contains(ip) {
			return false
		}
	}
	return true
}

// Dialled returns nil if a connection to address, an IP address with a port, may be opened,
// otherwise [ErrPrivate]. Dialers call it after the name was resolved, so a public name
// with a private address is refused too.
func Dialled(address string) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	if !Public(to.Addr()) {
		return ErrPrivate
	}
	return nil
}
