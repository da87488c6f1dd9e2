// Package netrule says which addresses the servers may call for others: an
// address that a user or a shop has typed must not lead into the network that
// the servers stand in.
package netrule

import (
	"errors"
	"net/netip"
)

// ErrPrivate is the refusal to connect to an address that is not public.
var ErrPrivate = errors.New("the address is not public")

// notPublic are networks that [netip.Addr] calls global unicast and that no
// server of the internet has.
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

// unicast is the part of IPv6 in which the internet's servers are. Outside it there are
// also the forms that lead to any IPv4 address: compatible (::a.b.c.d), translated
// (::ffff:0:a.b.c.d) and NAT64 (64:ff9b::a.b.c.d).
var unicast = netip.MustParsePrefix("2000::/3")

// Public reports whether ip is an address of the internet: not loopback, private,
// link-local (which metadata services have), multicast, or one that leads to
// such an address in another form.
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

// Dialled returns nil if a connection to address, an IP address with a port, may be
// opened, else [ErrPrivate]. Dialers ask after the name was resolved, so that a public name
// of a private address is refused too.
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
