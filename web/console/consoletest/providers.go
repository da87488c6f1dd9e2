package consoletest

import (
	"dropbell/adapters/config"
	"dropbell/app"
	"dropbell/domain/delivery/provider"
	"dropbell/domain/testmessage"
)

// judged returns the error of the provider's sender about its settings, like the program does.
func judged(p provider.Provider, secrets map[string]string) error {
	s, err := trialSender(p, secrets)
	if err != nil {
		return err
	}
	return s.Close()
}

// trialSender makes the provider's sender like the program does. It may call this machine.
func trialSender(p provider.Provider, secrets map[string]string) (testmessage.TrialSender, error) {
	s, _, err := app.ProviderSender(config.Config{ProvidersPrivate: true}, p, secrets, nil, nil)
	return s, err
}
