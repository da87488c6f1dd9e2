package stories

import (
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/delivery/provider"
	"dropbell/domain/fault"
	deliverypages "dropbell/views/pages/delivery"
	"dropbell/views/pages/parts"
	"dropbell/views/ui"
)

func providerList() deliverypages.Providers {
	return deliverypages.Providers{Keyed: true, Shops: map[int64]string{10: "Tea House"}, Environment: delivery.ChannelSetOf(delivery.App, delivery.Email),
		List: []provider.Provider{{ID: 1, Channel: delivery.SMS, Kind: provider.Twilio, Spec: provider.Spec{Name: "Twilio, the whole world", Weight: 3, Enabled: true}}, {ID: 2, Channel: delivery.SMS, Kind: provider.Aliyun, Spec: provider.Spec{Name: "阿里云短信", Weight: 1, Countries: []string{"CN", "HK", "MO", "TW"}, Enabled: true}}, {ID: 3, Channel: delivery.SMS, Kind: provider.SNS, Spec: provider.Spec{Name: "Amazon", Order: 9, Weight: 1, Enabled: true}}, {ID: 4, Channel: delivery.SMS, Kind: provider.JSON, Spec: provider.Spec{Name: "An-old-gateway-with-a-long-name.telecom.example.com", Weight: 1}, Shop: 10}, {ID: 5, Channel: delivery.Webhook, Kind: provider.Webhook, Spec: provider.Spec{Name: "Order service", Weight: 1, Enabled: true}}, {ID: 6, Channel: delivery.WebPush, Kind: provider.WeChat, Spec: provider.Spec{Name: "茶馆小程序", Weight: 1, Enabled: true, Settings: map[string]string{"app_id": "wx0123456789abcdef"}}}, {ID: 7, Channel: delivery.WebPush, Kind: provider.APNS, Spec: provider.Spec{Name: "Tea House on iPhones", Weight: 1, Enabled: true, Settings: map[string]string{"topic": "com.example.teahouse.reservations.international"}}}, {ID: 8, Channel: delivery.WebPush, Kind: provider.FCM, Spec: provider.Spec{Name: "Tea House on Android", Weight: 1, Enabled: true, Settings: map[string]string{"project": "tea-house-1a2b3"}}, Shop: 10}},
		Health: map[int64]provider.Health{
			1: {ProviderHealth: delivery.ProviderHealth{Messages: 84_100, Failed: 12}, Share: 71},
			3: {ProviderHealth: delivery.ProviderHealth{Messages: 900, Failed: 900, Error: "the provider answered HTTP 503"}, Share: 1},
		},
		Circuits: map[int64]delivery.Circuit{2: {State: delivery.CircuitClosed, HeldUntil: Now().Add(time.Minute)}, 8: {State: delivery.CircuitOpen}, 3: {State: delivery.CircuitOpen}},
		Sealed:   map[int64]bool{5: true}}
}

func providerForm() deliverypages.ProviderForm {
	return deliverypages.ProviderForm{ID: 2, Version: 3, Kind: provider.Aliyun, Set: []string{"key_secret", "token"}, Enabled: true, ReportsURL: "https://drops.example.com/callbacks/aliyun/2",
		Values: map[string]string{"name": "阿里云短信", "key_id": "LTAI5tExample", "signature": "茶馆", "order": "0", "weight": "0", "countries": "CN, HK",
			"templates": `{"reminder":{"zh-CN":{"id":"SMS_154950909","params":["drop","in","link"]}}}`},
		Errors: []fault.Field{{Name: "weight", Key: "rule.provider_weight", Message: "must be a number from 1 to 1000"}}}
}

func noProviders() deliverypages.Providers {
	return deliverypages.Providers{Environment: delivery.ChannelSetOf(delivery.App, delivery.Email)}
}

func providerKinds() deliverypages.ProviderKinds { return deliverypages.ProviderKinds{} }

func appleForm() deliverypages.ProviderForm {
	return deliverypages.ProviderForm{Kind: provider.APNS, Enabled: true, RequestKey: "once",
		Values: map[string]string{"name": "Tea House on iPhones", "topic": "com.example.teahouse", "key_id": "ABC123DEFG", "team_id": "DEF123GHIJ", "builds": provider.Sandbox, "order": "0", "weight": "1"},
		Errors: []fault.Field{{Name: "key", Key: "rule.provider_refused", Message: "is not usable: \"the key of APNs must be the .p8 file as Apple issued it, with its lines -----BEGIN PRIVATE KEY----- and -----END PRIVATE KEY-----\""}}}
}

func googleForm() deliverypages.ProviderForm {
	return deliverypages.ProviderForm{ID: 8, Version: 2, Kind: provider.FCM, Enabled: true, Set: []string{"account"},
		Recipient: "1001", Tried: parts.Try{Tone: ui.Bad, Text: "The provider refused the message for 1001. Check the values above. The answer: this recipient has no contact for the channel"},
		Values: map[string]string{"name": "Tea House on Android", "project": "tea-house-1a2b3", "per_minute": "1200000", "order": "0", "weight": "1"}}
}

func miniProgramForm() deliverypages.ProviderForm {
	return deliverypages.ProviderForm{Kind: provider.WeChat, Enabled: true, RequestKey: "once",
		Values: map[string]string{"name": "茶馆小程序", "app_id": "wx0123456789abcdef", "template": "45p6v5_cjJULly04Ms5KpRMmy65nXD2IVlZ0rWytrIs",
			"data": "thing1 = {{drop}}\ntime2 = {{opens_at}}\nthing3 = {{worth|-}}", "page": "/pages/drop", "order": "0", "weight": "1"},
		Errors: []fault.Field{{Name: "page", Key: "rule.provider_refused", Message: "is not usable: \"the page must be a path inside the mini program without a leading slash, such as pages/drop/index?id={id}\""}}}
}
