package program

import (
	"dropbell/adapters/config"
	deliverydb "dropbell/adapters/postgres/delivery"
	"dropbell/adapters/sms/aliyun"
	"dropbell/adapters/sms/jsonapi"
	"dropbell/adapters/sms/tencent"
	"dropbell/adapters/sms/twilio"
	"dropbell/domain/feedback"
	"dropbell/web/callbacks"
)

// smsSources reads what the provider of SMS reports. Amazon SNS makes no calls, and
// providers that sign nothing are read only with a secret in their address.
func (p *program) smsSources(refs feedback.Refs) []callbacks.Source {
	c := p.Config.SMS
	switch {
	case !c.Configured():
	case c.Provider == config.SMSTwilio:
		return []callbacks.Source{twilio.Source{AuthToken: c.KeySecret, Refs: refs}}
	case c.Token == "":
	case c.Provider == config.SMSAliyun:
		return []callbacks.Source{aliyun.Source{Key: c.Token, Refs: refs}}
	case c.Provider == config.SMSTencent:
		return []callbacks.Source{tencent.Source{Key: c.Token, Refs: refs, Serials: deliverydb.NewSerials(p.DB)}}
	case c.Provider == config.SMSJSON:
		return []callbacks.Source{jsonapi.Source{Token: c.Token, Refs: refs}}
	}
	return nil
}
