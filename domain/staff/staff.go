// Package staff holds the staff and services that operate Dropbell: roles, their
// permissions, and the record of their actions.
package staff

import (
	"slices"
	"strings"
	"time"

	"dropbell/domain/fault"
)

// Role is a set of permissions.
type Role string

// The roles. Each role includes the permissions of the role before it; only an
// admin manages members and keys.
const (
	Viewer   Role = "viewer"
	Marketer Role = "marketer"
	Operator Role = "operator"
	Admin    Role = "admin"
)

// Roles returns every role, the least powerful first.
func Roles() []Role { return []Role{Viewer, Marketer, Operator, Admin} }

// Valid reports whether r is one of the four roles.
func (r Role) Valid() bool { return slices.Contains(Roles(), r) }

// Permission is one thing that can be allowed or not.
type Permission string

// The permissions.
const (
	View            Permission = "view"
	ManageTemplates Permission = "manage_templates"
	ManageUsers     Permission = "manage_users"
	ManageCampaigns Permission = "manage_campaigns"
	Operate         Permission = "operate" // dead letters, channels, queues
	ManageStaff     Permission = "manage_staff"
)

var granted = map[Role][]Permission{
	Viewer:   {View},
	Marketer: {View, ManageTemplates, ManageCampaigns, ManageUsers},
	Operator: {View, ManageTemplates, ManageCampaigns, ManageUsers, Operate},
	Admin:    {View, ManageTemplates, ManageCampaigns, ManageUsers, Operate, ManageStaff},
}

// Faults of this room.
var (
	ErrForbidden = fault.New(fault.Denied, "forbidden", "you may not do this; ask an admin for access")
	// ErrEveryShop refuses a change that concerns every shop to staff who are
	// limited to some.
	ErrEveryShop = fault.New(fault.Denied, "limited_to_shops",
		"this concerns every shop, and you have access to some only; ask a member who is not limited to shops")
	ErrUnauthenticated = fault.New(fault.Unauthenticated, "unauthenticated", "sign in or send valid credentials")
	ErrNotFound        = fault.New(fault.NotFound, "staff_not_found", "there is no such staff member; look at the list of staff")
	ErrKeyNotFound     = fault.New(fault.NotFound, "key_not_found", "there is no such API key; look at the list of keys")
	// ErrKeyRepeated is the refusal to make a second key for one request: the
	// secret of the first key was shown, or the answer was lost.
	ErrKeyRepeated = fault.New(fault.Conflict, "key_repeated",
		"the form was sent twice, and one key was made; if you have not seen its secret, revoke it and make another")
	ErrEmailTaken = fault.New(fault.Conflict, "email_taken", "a member with this e-mail address exists already; use another address")
	ErrLastAdmin  = fault.New(fault.Conflict, "last_admin",
		"an admin of all shops who can sign in must remain; make another member one first")
)

// An Actor is the author of a change. The zero Actor may do nothing.
type Actor struct {
	// Label names the actor in the audit log: "staff:1", "key:3" or "system".
	Label string
	// Name is the actor's displayed name.
	Name  string
	Role  Role
	Shops []int64 // empty = all shops
}

// System is the actor of automatic changes, such as the closing of a drop at its
// end.
func System() Actor { return Actor{Label: "system", Name: "Dropbell", Role: Admin} }

// May returns nil if a may do p for the shop, otherwise [ErrForbidden]. Shop 0 =
// objects that belong to no shop.
func (a Actor) May(p Permission, shop int64) error {
	if !slices.Contains(granted[a.Role], p) {
		return ErrForbidden.Because("the role or the scopes of the caller do not allow this (%s)", p)
	}
	if shop != 0 && len(a.Shops) > 0 && !slices.Contains(a.Shops, shop) {
		return ErrForbidden.Because("you are limited to other shops; ask an admin for access")
	}
	return nil
}

// Can is [Actor.May] for pages that show or hide a button.
func (a Actor) Can(p Permission, shop int64) bool { return a.May(p, shop) == nil }

// MayEverywhere returns nil if a may do p with an effect on every shop, such as
// stopping a channel that all shops share. Otherwise it returns [ErrForbidden], or
// [ErrEveryShop] if a is limited to shops.
func (a Actor) MayEverywhere(p Permission) error {
	if err := a.May(p, 0); err != nil {
		return err
	}
	if len(a.Shops) > 0 {
		return ErrEveryShop
	}
	return nil
}

// SeesContacts reports whether a sees the contacts of users unmasked. Viewers,
// and staff who are limited to shops, see them masked: a user belongs to every
// shop.
func (a Actor) SeesContacts() bool { return a.MayEverywhere(ManageUsers) == nil }

// A Member is one person with access to the console.
type Member struct {
	ID           int64
	Email        string
	Name         string
	Role         Role
	Shops        []int64
	PasswordHash string
	Locale       string
	Theme        string
	DisabledAt   *time.Time
	CreatedAt    time.Time
	// Issuer and Subject identify the person at the identity provider who signs in as
	// the member; empty = no person yet.
	Issuer, Subject string
	// SecondFactors is how many second factors the member has.
	SecondFactors int
	// InvitedUntil is when the member's invitation ends or has ended; nil = there
	// is no invitation, or it was used.
	InvitedUntil *time.Time
}

// Actor returns the member as the cause of a change.
func (m Member) Actor() Actor {
	name := m.Name
	if name == "" {
		name = m.Email
	}
	return Actor{Label: "staff:" + itoa(m.ID), Name: name, Role: m.Role, Shops: m.Shops}
}

// NormalEmail returns the form under which addresses are compared and stored.
func NormalEmail(s string) string { return strings.ToLower(strings.TrimSpace(s)) }
