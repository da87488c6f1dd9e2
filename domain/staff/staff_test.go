package staff_test

import (
	"errors"
	"slices"
	"testing"

	"dropbell/domain/staff"
)

// allowed is the whole matrix: what is not here is forbidden.
var allowed = map[staff.Role][]staff.Permission{
	staff.Viewer:   {staff.View},
	staff.Marketer: {staff.View, staff.ManageTemplates, staff.ManageUsers},
	staff.Operator: {staff.View, staff.ManageTemplates, staff.ManageUsers, staff.Operate},
	staff.Admin:    {staff.View, staff.ManageTemplates, staff.ManageUsers, staff.Operate, staff.ManageStaff},
}

func TestPermissions(t *testing.T) {
	permissions := []staff.Permission{staff.View, staff.ManageTemplates, staff.ManageUsers, staff.Operate, staff.ManageStaff, "fly"}
	for _, role := range append(staff.Roles(), "", "root", "Admin") {
		for _, p := range permissions {
			want := slices.Contains(allowed[role], p)
			a := staff.Actor{Role: role}
			if err := a.May(p, 0); (err == nil) != want || !want && !errors.Is(err, staff.ErrForbidden) {
				t.Errorf("%q may %s: %v, want %v", role, p, err, want)
			}
			if a.Can(p, 10) != want {
				t.Errorf("%q can %s: %v", role, p, !want)
			}
		}
		if role.Valid() != (len(allowed[role]) > 0) {
			t.Errorf("%q is valid: %v", role, role.Valid())
		}
	}
}

func TestShopsLimitAnActor(t *testing.T) {
	limited := staff.Actor{Role: staff.Admin, Shops: []int64{10, 11}}
	for shop, want := range map[int64]bool{0: true, 10: true, 11: true, 12: false, -10: false} {
		if err := limited.May(staff.View, shop); (err == nil) != want || !want && !errors.Is(err, staff.ErrForbidden) {
			t.Errorf("shop %d: %v", shop, err)
		}
	}
	if !(staff.Actor{Role: staff.Viewer}).Can(staff.View, 999) {
		t.Error("somebody without a limit is limited")
	}
	if (staff.Actor{}).Can(staff.View, 10) || (staff.Actor{Shops: []int64{10}}).Can(staff.View, 10) {
		t.Error("an actor without a role may look")
	}
	if !staff.System().Can(staff.ManageTemplates, 10) || staff.System().Label != "system" {
		t.Errorf("the system is %+v", staff.System())
	}
}

func TestMemberAsActor(t *testing.T) {
	m := staff.Member{ID: 7, Email: "ann@example.com", Role: staff.Operator, Shops: []int64{10}}
	if a := m.Actor(); a.Label != "staff:7" || a.Name != "ann@example.com" || a.Role != staff.Operator || !slices.Equal(a.Shops, m.Shops) {
		t.Errorf("%+v", a)
	}
	m.Name = "Ann"
	if a := m.Actor(); a.Name != "Ann" {
		t.Errorf("%+v", a)
	}
	if got := staff.NormalEmail("  Ann@Example.COM \n"); got != "ann@example.com" {
		t.Errorf("%q", got)
	}
}
