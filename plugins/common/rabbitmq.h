/* SPDX-License-Identifier: Apache-2.0
 *
 * rabbitmq-c, wherever its headers are: below rabbitmq-c/ from 0.12 on, where the old names
 * still work but warn from 0.14 on. Include config.h first.
 */
#ifndef WAYBILL_PLUGINS_COMMON_RABBITMQ_H
#define WAYBILL_PLUGINS_COMMON_RABBITMQ_H

#ifdef HAVE_RABBITMQ_C_AMQP_H
#include <rabbitmq-c/amqp.h>
#include <rabbitmq-c/framing.h>
#include <rabbitmq-c/ssl_socket.h>
#include <rabbitmq-c/tcp_socket.h>
#else
#include <amqp.h>
#include <amqp_framing.h>
#include <amqp_ssl_socket.h>
#include <amqp_tcp_socket.h>
#endif

#endif
