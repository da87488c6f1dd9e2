package main

import (
	"dropbell/adapters/argon2"
	"dropbell/adapters/passkey"
	"dropbell/adapters/postgres/access"
	"dropbell/adapters/totp"
	"dropbell/domain/staff"
)

// wireStaff makes the use cases around staff, passwords and second factors.
func (p *program) wireStaff() error {
	codes, err := totp.New(p.cfg.SecondFactorKeys...)
	if err != nil {
		return err
	}
	p.staff = &staff.Service{Store: access.NewStaff(p.db), Passwords: argon2.New(2), Codes: codes, Passkeys: passkey.Passkeys{},
		FixedPolicy: staff.Policy(p.cfg.SecondFactor), PasswordsOff: p.cfg.PasswordsOff, Now: clock}
	return nil
}
