// Package review finds claims of scripts after a drop, by the signs that claims left, and holds what
// staff do about them: suspend coupons, return them to the stock, or let them be. A rule accuses
// nobody by one sign alone, except where many users share one phone or push token.
package review

import (
	"net/netip"
	"strings"
	"time"

	"dropbell/domain/user"
)

// A Tap is what a web process notes of a claim of a protected drop.
type Tap struct {
	TemplateID int64
	UserID     user.ID
	ClaimID    int64
	At         time.Time // when the request arrived
	Pass       string    // the text of the pass
	// Address and Agent are zero where a service claims for its users: they would be the service's.
	Address netip.Addr
	Agent   string
}

// Network returns the network of an address as text: the /24 of IPv4, the /48 of IPv6. It is empty
// for the zero address.
func Network(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	a = a.Unmap().WithZone("")
	bits := 48
	if a.Is4() {
		bits = 24
	}
	p, err := a.Prefix(bits)
	if err != nil {
		return ""
	}
	return p.String()
}

// programs begin the agents of programs that no person uses a shop with.
var programs = []string{"curl/", "wget/", "python", "go-http-client", "java/", "ruby", "axios/", "node", "undici", "libwww-perl", "httpie/", "scrapy", "aiohttp", "php"}

// Program reports whether the header User-Agent names a program, or nothing.
func Program(agent string) bool {
	agent = strings.ToLower(strings.TrimSpace(agent))
	for _, p := range programs {
		if strings.HasPrefix(agent, p) {
			return true
		}
	}
	return agent == ""
}

// A Claim is a claim with its signs, as a review judges it.
type Claim struct {
	CouponID int64
	UserID   user.ID
	Network  int64 // keyed hash; 0 = not known
	Agent    int64 // keyed hash; 0 = not known
	Program  bool
	// After is how long after the opening the request arrived; PassAge is how old its pass was. Both
	// are in milliseconds.
	After, PassAge int32
	// Opened says that the user had reserved a reminder of the drop, opened a link in one of its
	// messages, or had a page open for ten seconds or more before the pass was earned.
	Opened bool
	// Push, Phone and Household are numbers of what several users of the drop share; 0 = nothing.
	Push, Phone, Household int32
}
