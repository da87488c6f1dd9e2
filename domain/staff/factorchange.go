package staff

import (
	"context"

	"dropbell/domain/fault"
)

// RenameFactor changes the name of one of m's second factors.
func (s *Service) RenameFactor(ctx context.Context, m Member, id int64, name string) error {
	fields := &fault.Fields{}
	name = FactorInput{Name: name}.name(fields)
	if err := fields.Err(); err != nil {
		return err
	}
	f, err := s.factor(ctx, m, id)
	if err != nil {
		return err
	}
	e := m.entry(m.Actor(), "staff.rename_second_factor")
	e.Before = f.shown()
	f.Name = name
	e.After = f.shown()
	return s.Store.RenameFactor(ctx, m.ID, id, name, e)
}

// RemoveFactor removes one of m's second factors. It returns [ErrLastFactor] if it
// is m's only factor and m must have one. Removing the last factor removes the
// recovery codes.
func (s *Service) RemoveFactor(ctx context.Context, m Member, id int64) error {
	f, err := s.factor(ctx, m, id)
	if err != nil {
		return err
	}
	policy, _, err := s.Policy(ctx)
	if err != nil {
		return err
	}
	e := m.entry(m.Actor(), "staff.remove_second_factor")
	e.Before = f.shown()
	return s.Store.RemoveFactor(ctx, f, policy.Demands(m.Role), e)
}

func (s *Service) factor(ctx context.Context, m Member, id int64) (Factor, error) {
	all, err := s.Store.Factors(ctx, m.ID)
	if err != nil {
		return Factor{}, err
	}
	for _, f := range all {
		if f.ID == id {
			return f, nil
		}
	}
	return Factor{}, ErrFactorNotFound
}

// NewRecoveryCodes replaces m's recovery codes, used or not.
func (s *Service) NewRecoveryCodes(ctx context.Context, m Member) ([]string, error) {
	codes := newRecoveryCodes()
	e := m.entry(m.Actor(), "staff.recovery_codes")
	return codes, s.Store.ReplaceRecoveryCodes(ctx, m.ID, hashesOf(codes), e)
}

// ResetFactors removes all second factors and recovery codes of a member, signs the
// member out everywhere, and returns how many second factors there were. It
// requires the permission to manage staff.
func (s *Service) ResetFactors(ctx context.Context, by Actor, id int64) (int, error) {
	m, err := s.Member(ctx, by, id)
	if err != nil {
		return 0, err
	}
	return s.Store.ResetFactors(ctx, m.ID, m.entry(by, "staff.reset_second_factors"))
}

// ResetFactorsOf is [Service.ResetFactors] for the operator at the command
// line, by e-mail address.
func (s *Service) ResetFactorsOf(ctx context.Context, email string) (int, error) {
	m, err := s.Store.MemberByEmail(ctx, NormalEmail(email))
	if err != nil {
		return 0, err
	}
	return s.ResetFactors(ctx, System(), m.ID)
}

// Policy returns whether second factors are demanded. fixed says that the
// environment decides that.
func (s *Service) Policy(ctx context.Context) (p Policy, fixed bool, err error) {
	if s.FixedPolicy != "" {
		return s.FixedPolicy, true, nil
	}
	p, err = s.Store.Policy(ctx)
	return p, false, err
}

// SetPolicy changes whether second factors are demanded. It returns
// [ErrPolicyFixed] if the environment decides that.
func (s *Service) SetPolicy(ctx context.Context, by Actor, p Policy) error {
	if err := by.MayEverywhere(ManageStaff); err != nil {
		return err
	}
	old, fixed, err := s.Policy(ctx)
	if err != nil {
		return err
	}
	switch {
	case fixed:
		return ErrPolicyFixed
	case !p.Valid():
		return fault.ErrInvalid.Because("the setting must be required or optional")
	case p == old:
		return nil
	}
	setting := func(p Policy) map[string]Policy { return map[string]Policy{"second_factor_policy": p} }
	return s.Store.SavePolicy(ctx, p, Entry{Actor: by, Action: "staff.second_factor_policy", ObjectKind: "console",
		Before: setting(old), After: setting(p)})
}
