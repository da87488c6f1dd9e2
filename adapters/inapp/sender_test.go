package inapp_test

import (
	"testing"

	"dropbell/adapters/inapp"
	"dropbell/adapters/sendertest"
	"dropbell/domain/delivery"
)

func TestContract(t *testing.T) {
	sendertest.Run(t, sendertest.Harness{
		Accepting: func(*testing.T) delivery.Sender { return inapp.Sender{} },
	})
}
