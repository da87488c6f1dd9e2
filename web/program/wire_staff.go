package program

import (
	"dropbell/adapters/argon2"
	"dropbell/adapters/passkey"
	accessdb "dropbell/adapters/postgres/access"
	"dropbell/adapters/totp"
	"dropbell/app"
	"dropbell/domain/staff"
)

// wireStaff makes the use cases around staff, passwords and second factors.
func (p *program) wireStaff() error {
	codes, err := totp.New(p.Config.SecondFactorKeys...)
	if err != nil {
		return err
	}
	p.staff = &staff.Service{Store: accessdb.NewStaff(p.DB), Passwords: argon2.New(2), Codes: codes, Passkeys: passkey.Passkeys{},
		FixedPolicy: staff.Policy(p.Config.SecondFactor), PasswordsOff: p.Config.PasswordsOff, Now: app.Clock}
	return nil
}
