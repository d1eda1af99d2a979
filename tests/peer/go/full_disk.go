package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
)

const (
	sendTimeout = 5 * time.Second
	bodyBytes   = 1_000_000
	sendsMax    = 1_000
	triesMax    = 6
)

// fullDisk plays against a broker on a small disk, which whoever started this makes larger when all
// is consumed: a send ends by the client's own timeout, its consumers go on, and then its sends.
func fullDisk(cases *Cases, client pulsar.Client) {
	consumer, err := client.Subscribe(pulsar.ConsumerOptions{
		Topic: "full-disk", SubscriptionName: "s",
		SubscriptionInitialPosition: pulsar.SubscriptionPositionEarliest,
	})
	if err != nil {
		cases.play("a consumer", "made", func() (string, error) { return "", err })
		return
	}
	defer consumer.Close()
	producer, err := client.CreateProducer(pulsar.ProducerOptions{
		Topic: "full-disk", DisableBatching: true, SendTimeout: sendTimeout,
	})
	if err != nil {
		cases.play("a producer", "made", func() (string, error) { return "", err })
		return
	}
	defer producer.Close()
	stored := 0
	var lasted time.Duration
	cases.play("a send to a full disk", "TimeoutError", func() (string, error) {
		for ; stored < sendsMax; stored++ {
			begin := time.Now()
			err := sendNumber(producer, stored)
			lasted = time.Since(begin)
			if err != nil {
				return "", err
			}
		}
		return "the disk is not full", nil
	})
	cases.play("... ends by its timeout", "true", func() (string, error) {
		return fmt.Sprint(lasted > sendTimeout-time.Second && lasted < sendTimeout+4*time.Second), nil
	})
	cases.play("a new subscription to a new topic", "made", func() (string, error) {
		other, err := client.Subscribe(pulsar.ConsumerOptions{Topic: "full-disk-new", SubscriptionName: "s"})
		if err == nil {
			other.Close()
		}
		return "made", err
	})
	cases.play("consumers of the same client get and acknowledge everything", "all", func() (string, error) {
		for number := range stored {
			ctx, cancel := context.WithTimeout(context.Background(), wait)
			message, err := consumer.Receive(ctx)
			cancel()
			if err != nil {
				return "", fmt.Errorf("behind %d of %d: %w", number, stored, err)
			}
			if found := int(binary.BigEndian.Uint32(message.Payload())); found != number {
				return "", fmt.Errorf("%d came in place of %d", found, number)
			}
			if err := consumer.Ack(message); err != nil {
				return "", err
			}
		}
		return "all", nil
	})
	cases.play("sends go on when there is room", "sent", func() (string, error) {
		for range triesMax {
			if err = sendNumber(producer, sendsMax); err == nil {
				break
			}
		}
		return "sent", err
	})
}

func sendNumber(producer pulsar.Producer, number int) error {
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	payload := make([]byte, bodyBytes)
	binary.BigEndian.PutUint32(payload, uint32(number))
	_, err := producer.Send(ctx, &pulsar.ProducerMessage{Payload: payload})
	return err
}
