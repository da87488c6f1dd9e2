package program

import (
	"dropbell/adapters/sms"
	"dropbell/domain/delivery"
	"dropbell/domain/user/verification"
)

// newPhones makes the use case by which users verify their phone numbers.
func (p *program) newPhones() *verification.Service {
	return &verification.Service{Store: p.Stores.Verifications, Users: p.Stores.Users, Keys: verification.NewKeys(p.Config.LinkSecret),
		Sends:     func() bool { return p.channels.Has(delivery.SMS) },
		Numbers:   verification.Numbers{Usual: sms.Number, Forms: sms.Forms, Country: sms.CountryOf},
		Countries: p.Config.SMS.Countries}
}
